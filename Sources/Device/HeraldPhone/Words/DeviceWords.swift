/// A text of the device's own interface, which belongs to no app.
///
/// The raw value is its key in the JSON of ``DeviceWords``. In braces stand the parts that a view fills in.
package enum DeviceWord: String, Hashable, Sendable, CaseIterable {
    // MARK: - Buttons

    case close, view, send, allow, unlock
    case dontAllow = "dont_allow"
    case clearAll = "clear_all"
    case showAll = "show_all"
    case showLess = "show_less"
    /// `{count}` notifications of `{app}` are folded away.
    case moreFrom = "more_from"

    // MARK: - Screens

    case home, notifications, locked
    case homeScreen = "home_screen"
    case noNotifications = "no_notifications"

    // MARK: - Cards

    case updated, critical, passive
    case timeSensitive = "time_sensitive"
    case defaultSound = "default_sound"

    // MARK: - Live Activities

    case live, outdated, ended
    case liveActivities = "live_activities"
    /// It is outdated from or since `{time}`.
    case outdatedFrom = "outdated_from"
    case outdatedSince = "outdated_since"
    /// It is removed at `{time}`.
    case removedAt = "removed_at"

    // MARK: - The permission request of `{app}`

    case asksPermission = "asks_permission"
    case chooseKinds = "choose_kinds"
    case alerts, badges, sounds

    // MARK: - Signs of the status bar

    case muted, focus, saving, connected
    case notConnected = "not_connected"
}

/// The words of the device's own interface in one language.
///
/// Its JSON is an object with the member `language` and a member for each word.
public struct DeviceWords: Hashable, Sendable {
    /// The language, as a tag of RFC 5646.
    public let language: String
    package let texts: [DeviceWord: String]

    /// The languages of the interface, English first.
    package static let languages = ["en", "fr", "de", "es", "ja", "zh-Hans"]

    /// Chooses the first of the user's languages that the interface has; else English.
    package init(for preferences: [String]) {
        let chosen = LanguageChoice.choose(from: Self.languages, preferences: preferences, development: "en") ?? "en"
        let column = Self.languages.firstIndex(of: chosen) ?? 0
        language = chosen
        texts = Self.table.compactMapValues { $0.indices.contains(column) ? $0[column] : nil }
    }

    package subscript(word: DeviceWord) -> String { texts[word] ?? word.rawValue }
}

extension DeviceWords: Codable {
    private static let languageKey = "language"

    /// Reads the object.
    public init(from decoder: any Decoder) throws {
        let members = try [String: String](from: decoder)
        language = members[Self.languageKey] ?? "en"
        texts = Dictionary(
            uniqueKeysWithValues: DeviceWord.allCases.compactMap { word in members[word.rawValue].map { (word, $0) } }
        )
    }

    /// Writes the object.
    public func encode(to encoder: any Encoder) throws {
        var members = [Self.languageKey: language]
        for (word, text) in texts { members[word.rawValue] = text }
        try members.encode(to: encoder)
    }
}

extension DeviceWords {
    /// The texts of each word, in the order of ``languages``.
    static let table: [DeviceWord: [String]] = [
        .close: ["Close", "Fermer", "Schließen", "Cerrar", "閉じる", "关闭"],
        .view: ["View", "Afficher", "Ansehen", "Ver", "表示", "查看"],
        .send: ["Send", "Envoyer", "Senden", "Enviar", "送信", "发送"],
        .allow: ["Allow", "Autoriser", "Erlauben", "Permitir", "許可", "允许"],
        .unlock: [
            "slide to unlock", "faites glisser pour déverrouiller", "zum Entsperren schieben",
            "desliza para desbloquear", "スライドでロック解除", "滑动来解锁",
        ],
        .dontAllow: ["Don’t allow", "Ne pas autoriser", "Nicht erlauben", "No permitir", "許可しない", "不允许"],
        .clearAll: ["Clear all", "Tout effacer", "Alle löschen", "Borrar todo", "すべて消去", "全部清除"],
        .showAll: ["Show all", "Tout afficher", "Alles zeigen", "Mostrar todo", "すべて表示", "全部显示"],
        .showLess: ["Show less", "Afficher moins", "Weniger zeigen", "Mostrar menos", "表示を減らす", "收起"],
        .moreFrom: [
            "{count} more from {app}", "{count} de plus de {app}", "{count} weitere von {app}", "{count} más de {app}",
            "{app}からほか{count}件", "{app}还有{count}条",
        ],
        .home: ["Home", "Accueil", "Home", "Inicio", "ホーム", "主屏幕"],
        .notifications: [
            "Notification centre", "Centre de notifications", "Mitteilungszentrale", "Centro de notificaciones",
            "通知センター", "通知中心",
        ],
        .locked: ["Locked", "Verrouillé", "Gesperrt", "Bloqueado", "ロック中", "已锁定"],
        .homeScreen: ["Home screen", "Écran d’accueil", "Home-Bildschirm", "Pantalla de inicio", "ホーム画面", "主屏幕"],
        .noNotifications: [
            "No notifications", "Aucune notification", "Keine Mitteilungen", "No hay notificaciones", "通知はありません", "无通知",
        ],
        .updated: ["Updated", "Actualisé", "Aktualisiert", "Actualizada", "更新", "已更新"],
        .critical: ["Critical", "Critique", "Kritisch", "Crítica", "緊急", "重要"],
        .passive: ["Quiet", "Silencieuse", "Leise", "Silenciosa", "控えめ", "静默"],
        .timeSensitive: ["Time sensitive", "Urgent", "Dringend", "Urgente", "即時", "即时"],
        .defaultSound: ["Default sound", "Son par défaut", "Standardton", "Sonido por omisión", "デフォルトのサウンド", "默认声音"],
        .live: ["Live", "En direct", "Live", "En vivo", "ライブ", "实时"],
        .outdated: ["Outdated", "Périmée", "Veraltet", "Desactualizada", "期限切れ", "已过期"],
        .ended: ["Ended", "Terminée", "Beendet", "Terminada", "終了", "已结束"],
        .liveActivities: [
            "Live Activities", "Activités en direct", "Live-Aktivitäten", "Actividades en vivo", "ライブアクティビティ", "实时活动",
        ],
        .outdatedFrom: [
            "outdated from {time}", "périmée à partir de {time}", "veraltet ab {time}",
            "desactualizada a partir de las {time}", "{time}に期限切れ", "{time}起过期",
        ],
        .outdatedSince: [
            "outdated since {time}", "périmée depuis {time}", "veraltet seit {time}", "desactualizada desde las {time}",
            "{time}から期限切れ", "自{time}起已过期",
        ],
        .removedAt: [
            "removed at {time}", "supprimée à {time}", "entfernt um {time}", "eliminada a las {time}", "{time}に削除",
            "{time}移除",
        ],
        .asksPermission: [
            "“{app}” would like to send you notifications", "« {app} » souhaite vous envoyer des notifications",
            "„{app}“ möchte dir Mitteilungen senden", "“{app}” quiere enviarte notificaciones",
            "“{app}”は通知を送信します。よろしいですか？", "“{app}”想给你发送通知",
        ],
        .chooseKinds: [
            "Choose what they may do. You can change it later.",
            "Choisissez ce qui est permis. Vous pourrez le modifier plus tard.",
            "Wähle, was erlaubt ist. Du kannst es später ändern.",
            "Elige lo que se permite. Podrás cambiarlo más tarde.", "許可する項目を選んでください。あとで変更できます。", "请选择允许的内容。以后可以更改。",
        ],
        .alerts: ["Alerts", "Alertes", "Hinweise", "Alertas", "通知", "提醒"],
        .badges: ["Badges", "Pastilles", "Kennzeichen", "Globos", "バッジ", "标记"],
        .sounds: ["Sounds", "Sons", "Töne", "Sonidos", "サウンド", "声音"],
        .muted: ["Muted", "Son coupé", "Stummgeschaltet", "Silenciado", "消音", "静音"],
        .focus: [
            "A Focus is on", "Un mode de concentration est activé", "Ein Fokus ist eingeschaltet",
            "Hay un modo de concentración activado", "集中モードがオン", "专注模式已打开",
        ],
        .saving: ["Saving power", "Économie d’énergie", "Stromsparmodus", "Ahorro de energía", "省電力", "省电"],
        .connected: [
            "Connected to the service", "Connecté au service", "Mit dem Dienst verbunden", "Conectado al servicio",
            "サービスに接続済み", "已连接到服务",
        ],
        .notConnected: [
            "Not connected to the service", "Non connecté au service", "Nicht mit dem Dienst verbunden",
            "Sin conexión con el servicio", "サービスに未接続", "未连接到服务",
        ],
    ]
}
