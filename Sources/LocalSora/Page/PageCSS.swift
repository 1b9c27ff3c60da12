extension Page {
    static let css = ##"""
        A local Sora server.
        """##
}
