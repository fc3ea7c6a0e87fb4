module fairness

go 1.22
