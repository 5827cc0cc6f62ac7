"""The one exception for input that a user can mend."""


class InputError(ValueError):
    """Bad input. The message is one line that names the offending value and what is allowed.

    Scripts print it as ``error: <message>`` and exit with status 2; nothing has been launched or written by then.
    """
