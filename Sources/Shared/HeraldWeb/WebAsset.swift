/// A file of a page, embedded in the binary.
package struct WebAsset: Sendable {
    /// Files that pages share: colours, rendering, the clipboard.
    package static let shared: [String: WebAsset] = [
        "base.css": style(PackageResources.base_css),
        "clipboard.js": script(PackageResources.clipboard_js),
        "dom.js": script(PackageResources.dom_js),
        "herald.svg": picture(PackageResources.herald_svg),
    ]

    /// The content type.
    package let type: String
    package let bytes: [UInt8]

    package static func page(_ bytes: [UInt8]) -> WebAsset { WebAsset(type: "text/html; charset=utf-8", bytes: bytes) }

    package static func style(_ bytes: [UInt8]) -> WebAsset { WebAsset(type: "text/css; charset=utf-8", bytes: bytes) }

    package static func picture(_ bytes: [UInt8]) -> WebAsset { WebAsset(type: "image/svg+xml", bytes: bytes) }

    package static func script(_ bytes: [UInt8]) -> WebAsset {
        WebAsset(type: "text/javascript; charset=utf-8", bytes: bytes)
    }
}
