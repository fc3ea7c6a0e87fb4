# program: kubernetes (Python) 22.6.0, as in Debian 12
# pip: kubernetes==22.6.0 setuptools<80
python "$HERE/clients/official.py"
