"""What libraries import from here although the name says not to."""
