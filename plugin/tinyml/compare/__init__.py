"""Does the C compute what the model says? Against a reference runtime, and where it first does not."""
