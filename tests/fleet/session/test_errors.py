"""Spark's pages of text to one line."""

import pytest

from brimline.fleet.session.errors import said_by, said_by_store

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
    said = said_by(RuntimeError(PAGES))
    assert said.startswith("ModuleNotFoundError: No module named 'brimline': the workers need a Python with")


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


NO_LOGIN = "S3 denied access: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
REFUSALS = [
    "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token in 5.1s, after 10 retries, \n"
    "max_retries: 10, retry_timeout: 180s - HTTP error: error sending request",
    "When listing objects under key 'x' in bucket 'b': AWS Error ACCESS_DENIED during ListObjectsV2 operation",
    "When getting information for key 'x' in bucket 'b': AWS Error UNKNOWN (HTTP status 403) during HeadObject "
    "operation: No response body. HTTP response code 403",
    "Client error with status 403 Forbidden: <Error><Code>SignatureDoesNotMatch</Code></Error>",
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_a_store_that_lets_nobody_in_is_one_sentence(refusal: str) -> None:
    assert said_by_store("s3://bucket/x", OSError(refusal)).startswith(NO_LOGIN)
    assert said_by_store("/local", OSError(refusal)) == " ".join(refusal.split())


def test_another_failure_of_a_store_is_said_as_it_is() -> None:
    assert said_by_store("s3://bucket/x", OSError("no such\n bucket")) == "no such bucket"
