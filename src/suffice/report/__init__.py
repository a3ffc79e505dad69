"""Reports: tables for the terminal, result files, pictures, HTML, and progress; import from the file that makes it."""
