"""Worker processes of this machine, and what they are asked in turns."""
