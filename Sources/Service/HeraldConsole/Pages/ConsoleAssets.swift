import HeraldModel
import HeraldWeb

/// The files of the console's page; they are embedded in the binary, from the folder `Resources`.
enum ConsoleAssets {
    /// The content security policy: only the page's own files.
    static let policy = PackageResources.content_security_policy_txt

    /// The page, which names its files with their version.
    static let page = WebAsset.page(
        Array(
            String(decoding: PackageResources.index_html, as: UTF8.self)
                .split(separator: "{version}", omittingEmptySubsequences: false).joined(separator: version).utf8
        )
    )

    /// A digest of all files (FNV-1a): what it names never changes.
    static let version: String = {
        var digest: UInt64 = 0xCBF2_9CE4_8422_2325
        for (name, file) in files.sorted(by: { $0.key < $1.key }) {
            for byte in Array(name.utf8) + file.bytes { digest = (digest ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        }
        return Hex.text(withUnsafeBytes(of: digest.bigEndian, Array.init))
    }()

    /// The files by their name under `/assets/VERSION/`.
    static let files: [String: WebAsset] = [
        "api.js": .script(PackageResources.api_js),
        "charts.js": .script(PackageResources.charts_js),
        "dialogs.js": .script(PackageResources.dialogs_js),
        "format.js": .script(PackageResources.format_js),
        "icons.js": .script(PackageResources.icons_js),
        "json.js": .script(PackageResources.json_js),
        "keys.js": .script(PackageResources.keys_js),
        "layout.css": .style(PackageResources.layout_css),
        "live.js": .script(PackageResources.live_js),
        "main.js": .script(PackageResources.main_js),
        "page-channels.js": .script(PackageResources.page_channels_js),
        "page-compose.js": .script(PackageResources.page_compose_js),
        "page-counts.js": .script(PackageResources.page_counts_js),
        "page-device.js": .script(PackageResources.page_device_js),
        "page-devices.js": .script(PackageResources.page_devices_js),
        "page-drills.js": .script(PackageResources.page_drills_js),
        "page-inbox.js": .script(PackageResources.page_inbox_js),
        "page-nothing.js": .script(PackageResources.page_nothing_js),
        "page-notification.js": .script(PackageResources.page_notification_js),
        "page-notifications.js": .script(PackageResources.page_notifications_js),
        "page-now.js": .script(PackageResources.page_now_js),
        "page-provider.js": .script(PackageResources.page_provider_js),
        "page-providers.js": .script(PackageResources.page_providers_js),
        "page-refusals.js": .script(PackageResources.page_refusals_js),
        "page-settings.js": .script(PackageResources.page_settings_js),
        "page-tools.js": .script(PackageResources.page_tools_js),
        "pages.css": .style(PackageResources.pages_css),
        "parts.css": .style(PackageResources.parts_css),
        "payload-views.js": .script(PackageResources.payload_views_js),
        "repeat.js": .script(PackageResources.repeat_js),
        "router.js": .script(PackageResources.router_js),
        "search.js": .script(PackageResources.search_js),
        "shell.js": .script(PackageResources.shell_js),
        "sign-in.js": .script(PackageResources.sign_in_js),
        "snippets.js": .script(PackageResources.snippets_js),
        "states.js": .script(PackageResources.states_js),
        "table.js": .script(PackageResources.table_js),
        "ui.js": .script(PackageResources.ui_js),
        "views.js": .script(PackageResources.views_js),
        "words-en-pages.js": .script(PackageResources.words_en_pages_js),
        "words-en.js": .script(PackageResources.words_en_js),
        "words.js": .script(PackageResources.words_js),
    ].merging(WebAsset.shared) { own, _ in own }
}
