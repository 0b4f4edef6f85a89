"""The command `ansor`: tunes a model, shows what is known, compares (`ansor --help`).

One file per command; `main` puts them together and turns errors into one line and exit status 2.
A command imports its modules when it runs, so that help is quick.
"""
