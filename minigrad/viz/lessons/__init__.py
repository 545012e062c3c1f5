"""Views that show one lesson: each is loaded when it is first used."""
