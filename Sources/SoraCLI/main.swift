print("sora")
