"""Text files and the standard input: types, faults with their line, temporary storage."""
