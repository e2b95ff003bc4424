test "$(sh calc.sh 2 3)" = 5 || { echo "2 + 3 is not $(sh calc.sh 2 3)"; exit 1; }
