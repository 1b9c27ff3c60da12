import Foundation

/// Where a picture goes inside of a rectangle.
enum VideoLayout {
    /// The part of the picture that is shown and the place where it is shown, both in their own coordinates.
    struct Placement: Equatable {
        /// In pixels of the picture.
        var source: CGRect
        /// In units of the bounds.
        var target: CGRect
    }

    /// Nil when there is nothing to show.
    static func placement(of picture: CGSize, in bounds: CGSize, mode: UIView.ContentMode) -> Placement? {
        guard picture.width > 0, picture.height > 0, bounds.width > 0, bounds.height > 0 else { return nil }
        let whole = CGRect(origin: .zero, size: picture)
        let everything = CGRect(origin: .zero, size: bounds)
        switch mode {
        case .scaleToFill:
            return Placement(source: whole, target: everything)
        case .scaleAspectFill:
            let scale = max(bounds.width / picture.width, bounds.height / picture.height)
            let size = CGSize(width: bounds.width / scale, height: bounds.height / scale)
            return Placement(source: centred(size, in: picture), target: everything)
        default:
            let scale = min(bounds.width / picture.width, bounds.height / picture.height)
            let size = CGSize(width: picture.width * scale, height: picture.height * scale)
            return Placement(source: whole, target: centred(size, in: bounds))
        }
    }

    private static func centred(_ size: CGSize, in outer: CGSize) -> CGRect {
        CGRect(
            x: (outer.width - size.width) / 2, y: (outer.height - size.height) / 2, width: size.width,
            height: size.height)
    }
}
