# program: kubernetes (Python) 37.0.2
# pip: kubernetes==37.0.2
python "$HERE/clients/official.py"
