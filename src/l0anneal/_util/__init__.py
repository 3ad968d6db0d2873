"""Small tools that every room uses; they import nothing else of the package."""
