"""`vcrf serve`: the page with its data, and a service for pipelines. The extra `web`: starlette and uvicorn.

Requests name models, never files: what the service reads and writes is decided when it starts.
"""
