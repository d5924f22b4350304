"""The operating system of a visitor, as far as the device names it: page views have no column for it."""

from __future__ import annotations

from quality.contracts.columns import UNKNOWN

_NAMED = (
    "Windows",
    "Linux",
    "Ubuntu",
    "Debian",
    "Fedora",
    "CentOS",
    "Red Hat",
    "SUSE",
    "Arch Linux",
    "Gentoo",
    "FreeBSD",
    "OpenBSD",
    "NetBSD",
    "Solaris",
    "Chrome OS",
    "Tizen",
    "KaiOS",
    "Windows Phone",
    "Windows Mobile",
    "Android",
    "iOS",
)
"""Systems that the parser of agents names as the device, where an agent names none."""
_OF_DEVICES = {
    "Windows": ("windows-pc",),
    "Linux": ("linux-pc",),
    "Chrome OS": ("chromebook",),
    "macOS": ("mac",),
    "iOS": ("iphone", "ipad", "ipod", "ios-device"),
    "Android": (
        *(
            "alcatel",
            "asus",
            "galaxy",
            "generic smartphone",
            "generic tablet",
            "google pixel",
            "htc",
            "huawei",
            "kindle",
        ),
        *("lenovo", "lg-", "motorola", "nexus", "oneplus", "oppo", "pixel", "redmi", "samsung gt-i", "samsung gt-n"),
        *("samsung gt-p", "samsung gt-s", "samsung sm-", "sonyericsson", "vivo", "xiaomi"),
    ),
}
"""How the names of a system's devices begin, in lower case."""
_SYSTEMS = {name.lower(): name for name in _NAMED}


def system_of(device: str) -> str:
    """Return the operating system of a device type, or unknown: no system is guessed from a name that has several."""
    name = device.lower()
    if name in _SYSTEMS:
        return _SYSTEMS[name]
    if name == "k":
        # What Chrome says instead of the model of any Android device.
        return "Android"
    return next((system for system, begins in _OF_DEVICES.items() if name.startswith(begins)), UNKNOWN)
