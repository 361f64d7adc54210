// The words of the console in English, one text a name. A translation is another such file with the same names.
// Those of pages that open later are in words-en-pages.js, so that the first page comes soon.
// `{name}` is filled in. A text that depends on a number has `one` and `other`.

export const WORDS = {
  "unit.ms": "{n} ms", "unit.s": "{n} s", "unit.min": "{n} min", "unit.h": "{n} h", "unit.d": "{n} d", "unit.y": "{n} y",
  "unit.B": "{n} B", "unit.KB": "{n} KiB", "unit.MB": "{n} MiB", "unit.GB": "{n} GiB",
  "time.ago": "{time} ago", "time.in": "in {time}",
  loading: "Loading…", close: "Close", cancel: "Cancel", skip: "Skip to the content", json: "JSON",
  brand: "Herald, home", bars: "What is unusual", nav: "Pages", "nav.bottom": "Main pages",
  "copy.done": "Copied", "copy.failed": "The browser does not allow this page to copy: select the text and copy it.",
  "failure.away": "The service does not answer.", "failure.retry": "Try again",
  "list.more": "Show more",

  "place.now": "Now", "place.notifications": "Notifications", "place.inbox": "Inbox", "place.compose": "Compose", "place.devices": "Devices",
  "place.providers": "Providers", "place.refusals": "Refusals", "place.counts": "Counts", "place.channels": "Channels", "place.drills": "Bad days", "place.tools": "Tools",
  "place.settings": "Settings", "place.more": "More", "place.nothing": "Nothing here",
  "role.viewer": "viewer", "role.sender": "sender", "role.admin": "admin",
  "env.production": "production", "env.sandbox": "sandbox", "env.all": "both environments",
  "theme.dark": "Dark colours", "theme.light": "Light colours",
  "search.label": "Search notifications", "search.place": "Search notifications  ( / )",

  "in.title": "Sign in to Herald", "in.run": "On the machine of the service, run this and open the link that it prints:",
  "in.token": "Or paste a token", "in.hint": "A token of “herald console token”, or the one in run/admin.token of the data folder.",
  "in.send": "Sign in", "in.open": "Without signing in there are:",

  away: "The service is away since {time}. What you see is from before.", "away.retry": "Trying again in {time}.", "away.now": "Try now",
  "drill.bar": "Drill: {what}", "drill.stop": "Stop", "drill.stopped": "The drill has stopped.", "drill.see": "See it",
  "catching.bar": "Payloads are caught, in memory only.", "catching.see": "Inbox",
  "clock.bar": "The service's clock is not the machine's.", "clock.see": "See the clock",
  "readonly.bar": "This console is read-only.",

  "chart.table": "As a table", "chart.time": "Time", "chart.spark": "{name}, last 15 minutes: from {low} to {high}",
  "range.15m": "15 minutes", "range.24h": "24 hours", "range.30d": "30 days",
  "now.ready": "Ready", "now.not": "Not ready", "now.away": "No answer", "now.since": "for {time}", "now.rate": "{n}/s", "now.range": "Range",
  "now.chart": "Outcomes", "now.chart.label": "Outcomes of the last {range}: {list}",
  "series.requests": "Requests", "series.devices_connected": "Devices", "series.notifications_waiting": "Waiting", "series.requests_refused": "Refused",
  "series.delivery_seconds_p99": "99 % arrive in", "series.received": "received", "series.delivered": "delivered",
  "series.delivered_from_storage": "delivered from storage", "series.stored": "stored", "series.replaced": "replaced", "series.discarded": "discarded",
  "series.refused_by_device": "refused by the device", "series.refused": "refused", "series.sent_to_subscribers": "sent to subscribers",
  "problems.title": "Problems", "problems.none": "No problems.", "problems.never": "No problems since the service started.", "problems.history": "History",
  "problems.now": "Current", "problems.since": "for {time}", "problems.until": "ended {time}", "problems.more": "More",
  "just.title": "Just now", "just.none": "No notifications yet. They appear here as they come.", "just.compose": "Send one",
  "just.devices": { one: "{n} device", other: "{n} devices" },
  "live.pause": "Pause", "live.go": "Go on", "live.on": "Live", "live.new": { one: "{n} new", other: "{n} new" },
  "col.time": "Time", "col.app": "App", "col.device": "Device", "col.by": "Sent by", "col.type": "Type", "col.priority": "Priority", "col.state": "State",
  "col.took": "Took", "col.lines": "Lines", "col.environment": "Environment", "col.size": "Payload",
};
