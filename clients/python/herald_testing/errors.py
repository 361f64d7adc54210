"""What can go wrong with the service of a test."""


class HeraldError(Exception):
    """The service or a device could not do something; the text says what and why."""


class HeraldUnexpected(HeraldError, AssertionError):
    """More came than a test expects."""


class HeraldTimeout(HeraldError, AssertionError):
    """Something did not come in time, so that a test that waits for it fails."""
