import Foundation

/// A rectangle in a tree of views. Stands in for the type of UIKit; the root of a tree owns a window.
@MainActor open class UIView {
    /// How content fits into bounds of another shape.
    public enum ContentMode: Int, Sendable {
        case scaleToFill
        case scaleAspectFit
        case scaleAspectFill
        case redraw
        case center
        case top
        case bottom
        case left
        case right
        case topLeft
        case topRight
        case bottomLeft
        case bottomRight
    }

    /// Place in the superview.
    open var frame: CGRect {
        didSet { if frame.size != oldValue.size { layoutSubviews() } }
    }
    /// The same rectangle with its own origin.
    open var bounds: CGRect {
        get { CGRect(origin: .zero, size: frame.size) }
        set { frame.size = newValue.size }
    }
    open var isHidden = false
    open var contentMode = ContentMode.scaleToFill
    public private(set) weak var superview: UIView?
    /// From back to front.
    public private(set) var subviews: [UIView] = []

    public init(frame: CGRect) { self.frame = frame }
    public convenience init() { self.init(frame: .zero) }
    /// Nil: there are no archives of views on Linux.
    public required init?(coder: NSCoder) { return nil }

    open func addSubview(_ view: UIView) {
        guard view !== self else { return }
        view.removeFromSuperview()
        subviews.append(view)
        view.superview = self
        layoutSubviews()
    }

    open func removeFromSuperview() {
        superview?.subviews.removeAll { $0 === self }
        superview = nil
    }

    open func bringSubviewToFront(_ view: UIView) {
        guard let index = subviews.firstIndex(where: { $0 === view }) else { return }
        subviews.append(subviews.remove(at: index))
    }

    /// Called when the size or the subviews changed. Does nothing; subclasses place their subviews.
    open func layoutSubviews() {}
}
