import HeraldWeb

/// The files of the page; they are embedded in the binary, from the folder `Resources`.
enum ScreenAssets {
    static let page = WebAsset.page(PackageResources.index_html)

    /// The content security policy: only the page's own files, and an app's page in a frame.
    static let policy = PackageResources.content_security_policy_txt

    /// The files by their name under `/assets/`.
    static let files: [String: WebAsset] = [
        "activity-card.js": .script(PackageResources.activity_card_js),
        "announce.js": .script(PackageResources.announce_js),
        "app-frame.js": .script(PackageResources.app_frame_js),
        "app-screen.js": .script(PackageResources.app_screen_js),
        "apps.js": .script(PackageResources.apps_js),
        "arrow.svg": .picture(PackageResources.arrow_svg),
        "banner.js": .script(PackageResources.banner_js),
        "cards.css": .style(PackageResources.cards_css),
        "copy.js": .script(PackageResources.copy_js),
        "display-log.js": .script(PackageResources.display_log_js),
        "failure.js": .script(PackageResources.failure_js),
        "history.js": .script(PackageResources.history_js),
        "home-screen.js": .script(PackageResources.home_screen_js),
        "icons.js": .script(PackageResources.icons_js),
        "languages.js": .script(PackageResources.languages_js),
        "layout.css": .style(PackageResources.layout_css),
        "lock-screen.js": .script(PackageResources.lock_screen_js),
        "log-entry.js": .script(PackageResources.log_entry_js),
        "log.css": .style(PackageResources.log_css),
        "log.js": .script(PackageResources.log_js),
        "lost.js": .script(PackageResources.lost_js),
        "main.js": .script(PackageResources.main_js),
        "notification-card.js": .script(PackageResources.notification_card_js),
        "notification-list.js": .script(PackageResources.notification_list_js),
        "page.css": .style(PackageResources.page_css),
        "panel.css": .style(PackageResources.panel_css),
        "panel.js": .script(PackageResources.panel_js),
        "pcm.js": .script(PackageResources.pcm_js),
        "pending.js": .script(PackageResources.pending_js),
        "permissions.js": .script(PackageResources.permissions_js),
        "phone.css": .style(PackageResources.phone_css),
        "phone.js": .script(PackageResources.phone_js),
        "question.js": .script(PackageResources.question_js),
        "screens.css": .style(PackageResources.screens_css),
        "slider.js": .script(PackageResources.slider_js),
        "sounds.js": .script(PackageResources.sounds_js),
        "stream.js": .script(PackageResources.stream_js),
        "tabs.js": .script(PackageResources.tabs_js),
        "tone.js": .script(PackageResources.tone_js),
        "words.js": .script(PackageResources.words_js),
    ].merging(WebAsset.shared) { own, _ in own }
}
