"""What a compiled model is made of and what it takes, for people and for programs."""
