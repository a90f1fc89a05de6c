"""Two depths of property testing: quick for every run, deep for `make test-long`."""

from hypothesis import settings

pytest_plugins = ("tests.scheduling",)

settings.register_profile("long", max_examples=5000, deadline=None)
settings.register_profile("quick", deadline=None)
settings.load_profile("quick")
