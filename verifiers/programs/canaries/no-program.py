Sure! Here is the program:
```python
print(6)
```
