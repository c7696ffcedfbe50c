"""`python -m evalapp`: the program `evalapp`."""

from evalapp.cli import main

main()
