"""Why a kernel came back: a number ≥ 0 is the column whose row of the Gram matrix it needs."""

DONE = -1
FULL = -3  # the tableau has no room for another column
SINGULAR = -2  # a refresh found the support singular to working precision

# indices into a kernel's tally: proposals made and accepted since the tally was cleared, and the
# proposal that waits for a row of the Gram matrix (slot, outside position), −1: none
PROPOSED, ACCEPTED, SLOT, OUTSIDE = range(4)
