"""What the other rooms stand on and what does not mention tensors: errors, files, source lines, tables of text."""
