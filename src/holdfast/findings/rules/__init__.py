"""What is found by rule, one finder a file; `gather` hands them each message."""
