"""Small tools that every room uses; they import nothing else from the package."""
