"""The units, a module each: what it is for, its tasks, and what students are known to get wrong."""
