# The failed checks and stories in the log of a part (run.sh), each with what it said: the indented lines below it. Of
# many lines only the first and the last ones, where the reason is.

function close_check(   i) {
  for (i = 1; i <= said; i++) {
    if (said <= 4 || i == 1 || i > said - 3) print lines[i]
    else if (i == 2) print "    (" said - 4 " more lines)"
  }
  said = 0
}

/^(✗|FAILED |S[0-9]+[a-z]* +FAILED)/ { close_check(); print; inside = 1; next }
inside && /^ / { lines[++said] = $0; next }
{ close_check(); inside = 0 }
END { close_check() }
