"""What the public functions accept: a call that fails names the argument at fault."""
