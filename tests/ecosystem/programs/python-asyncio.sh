# program: kubernetes_asyncio 36.1.0
# pip: kubernetes_asyncio==36.1.0
python "$HERE/clients/asynchronous.py"
