/// How a picture fills a view.
package enum VideoContentMode: Sendable, CaseIterable {
    /// Stretched to the view.
    case scaleToFill
    /// All of the picture is seen, with bars.
    case scaleAspectFit
    /// All of the view is covered; what is too much of the picture is cut off evenly.
    case scaleAspectFill
}

/// Where which part of a picture is drawn.
package struct VideoLayout: Sendable, Equatable {
    package struct Rectangle: Sendable, Equatable {
        package var x: Double, y: Double, width: Double, height: Double
        package init(x: Double, y: Double, width: Double, height: Double) {
            self.x = x
            self.y = y
            self.width = width
            self.height = height
        }
        package var isEmpty: Bool { width <= 0 || height <= 0 }
    }
    /// Part of the stored picture (before rotation), in its pixels.
    package var source: Rectangle
    /// Part of the view that the upright picture covers, in the view's units. Centred.
    package var destination: Rectangle

    /// Nothing to draw: picture or view has no area.
    package static let empty = VideoLayout(
        source: .init(x: 0, y: 0, width: 0, height: 0), destination: .init(x: 0, y: 0, width: 0, height: 0))

    /// The rectangles for a picture of `videoSize` (stored size) in a view of `viewSize`.
    package static func make(
        mode: VideoContentMode, videoSize: (width: Int, height: Int), viewSize: (width: Double, height: Double),
        rotation: VideoRotation = .none
    ) -> VideoLayout {
        guard videoSize.width > 0, videoSize.height > 0, viewSize.width > 0, viewSize.height > 0,
            viewSize.width.isFinite, viewSize.height.isFinite
        else { return .empty }
        let stored = Rectangle(x: 0, y: 0, width: Double(videoSize.width), height: Double(videoSize.height))
        let whole = Rectangle(x: 0, y: 0, width: viewSize.width, height: viewSize.height)
        let upright =
            rotation.isTransposing
            ? (width: stored.height, height: stored.width) : (width: stored.width, height: stored.height)
        let horizontal = viewSize.width / upright.width
        let vertical = viewSize.height / upright.height
        switch mode {
        case .scaleToFill:
            return VideoLayout(source: stored, destination: whole)
        case .scaleAspectFit:
            let scale = min(horizontal, vertical)
            let size = (width: upright.width * scale, height: upright.height * scale)
            return VideoLayout(
                source: stored,
                destination: Rectangle(
                    x: (viewSize.width - size.width) / 2, y: (viewSize.height - size.height) / 2, width: size.width,
                    height: size.height))
        case .scaleAspectFill:
            let scale = max(horizontal, vertical)
            let shown = (width: viewSize.width / scale, height: viewSize.height / scale)
            let part = rotation.isTransposing ? (width: shown.height, height: shown.width) : shown
            return VideoLayout(
                source: Rectangle(
                    x: (stored.width - part.width) / 2, y: (stored.height - part.height) / 2, width: part.width,
                    height: part.height),
                destination: whole)
        }
    }
}
