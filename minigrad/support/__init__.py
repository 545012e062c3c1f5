"""The base of the other rooms, with nothing about tensors: errors, files, source lines, locks, tables of text."""
