"""``python -m pinprick``: the command line, where the script is not on the path."""

from pinprick.cli import main

if __name__ == "__main__":
    main()
