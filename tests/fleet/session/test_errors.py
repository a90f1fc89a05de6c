"""Spark's pages of text to one line."""

from brimline.fleet.session.errors import said_by

PAGES = """[STREAM_FAILED] Query [id = 1] terminated with exception: Return Message: Traceback (most recent call last):
  File "a.py", line 1, in call
    raise e
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 3602, in main
    read()
    ^^^^^^
ModuleNotFoundError: No module named 'brimline'

\tat org.apache.spark.api.python
"""


def test_what_python_said_at_its_end_is_said() -> None:
    assert said_by(RuntimeError(PAGES)) == "ModuleNotFoundError: No module named 'brimline'"


def test_else_the_first_line_that_says_something_is() -> None:
    assert said_by(RuntimeError("\n  [PATH_NOT_FOUND] no such path\n\tat org")) == "[PATH_NOT_FOUND] no such path"


def test_what_java_said_is_and_not_that_it_was_called() -> None:
    text = "An error occurred while calling o4346.save.\n: java.lang.VirtualMachineError: Out of space\n\tat org"

    assert said_by(RuntimeError(text)) == "java.lang.VirtualMachineError: Out of space"


def test_a_traceback_may_begin_within_a_line() -> None:
    text = "Return Message: Traceback (most recent call last):\n  File a\nbrimline.Killed\n"

    assert said_by(RuntimeError(text)) == "brimline.Killed"


def test_an_error_without_words_has_a_name() -> None:
    assert said_by(KeyError()) == "KeyError"
