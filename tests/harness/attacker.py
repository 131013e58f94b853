"""The ordinary user of the attacks."""

USER = 4711
