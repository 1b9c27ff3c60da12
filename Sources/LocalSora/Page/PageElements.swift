extension Page {
    /// What the page's modules share: an ES module.
    // swift-format-ignore
    static let elements = ##"""
// What all parts of the page use.

export const $ = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

/// The time of day.
export const clock = () => new Date().toLocaleTimeString([], { hour12: false });
"""##
}
