"""Scenarios that the learner was not tuned on: it was written and measured with others first."""

from __future__ import annotations

from collections.abc import Sequence

from support.curated_traffic import Behaviour, Calls, Maker


def checkout(m: Maker) -> tuple[Calls, str]:
    cart = f"cart:{m.random.randint(1, 9_999_999)}"
    calls: Calls = [("open_cart", {"cart": cart})]
    for _ in range(m.pick(1, 2, 2, 3)):
        calls.append(("add_item", {"ean": m.code(13), "count": m.pick(1, 1, 1, 2, 3)}))
    calls += m.shuffled(
        [
            ("check_stock", {"cart": cart, "store": m.pick("north", "south", "online")}),
            ("quote_shipping", {"zip": m.number(5), "express": m.chance(0.3)}),
        ]
    )
    if m.chance(0.4):
        calls.append(("apply_voucher", {"voucher": f"{m.pick('SPRING', 'VIP')}-{m.code(5)}"}))
    total = m.amount(10, 900)
    calls.append(("pay", {"total": total, "method": m.pick("card", "invoice", "wallet")}))
    return calls, m.pick(f"Thank you! Your order is paid: {total}.", "Your order is paid, thanks.")


def translation(m: Maker) -> tuple[Calls, str]:
    source, target = m.pick("en", "de"), m.pick("fr", "it", "pl", "ja")
    calls: Calls = [("detect_language", {"text": m.text()})]
    if m.chance(0.5):
        calls.append(
            ("load_glossary", {"id": m.random.randint(1, 60), "domain": m.pick("law", "it")})
        )
    options = {"formality": m.pick("formal", "informal"), "keep_markup": True}
    translate = {"text": m.text(), "from": source, "to": target, "options": options}
    calls.append(("translate", translate))
    if m.chance(0.3):
        calls.append(("request_review", {"reviewer": m.email(), "by": m.time()}))
        return calls, "The translation is done and waits for its review."
    calls.append(("deliver", {"file": f"out/{m.uuid()}.txt", "words": m.random.randint(20, 4000)}))
    return calls, "The translation is done."


def inventory(m: Maker) -> tuple[Calls, str]:
    warehouse = m.pick("OSL1", "OSL2", "BGO1")
    calls: Calls = [("count_stock", {"warehouse": warehouse, "sku": f"{m.code(3)}.{m.number(4)}"})]
    if m.chance(0.5):
        calls.append(("list_suppliers", {"region": m.pick("eu", "apac"), "min_rating": 4}))
        order = {"supplier": m.random.randint(1000, 9999), "units": m.random.randrange(10, 900, 10)}
        calls.append(("order_stock", {**order, "due": m.date()}))
    else:
        lot = f"L{m.period.year}/{m.number(3)}"
        calls.append(
            ("move_stock", {"lot": lot, "to": m.pick("OSL1", "BGO1"), "fragile": m.chance(0.2)})
        )
    if m.chance(0.3):
        calls.append(("print_label", {"copies": m.pick(1, 2), "printer": f"zebra-{m.number(2)}"}))
    return calls, f"The stock of {warehouse} is taken care of."


def support_ticket(m: Maker) -> tuple[Calls, str]:
    ticket = m.random.randint(200_000, 999_999)
    calls: Calls = m.shuffled(
        [
            ("read_ticket", {"ticket": ticket}),
            ("find_customer", {"phone": f"+47 {m.number(4)} {m.number(4)}"}),
            ("recent_incidents", {"product": m.pick("app", "web", "tv"), "hours": m.pick(24, 72)}),
        ]
    )
    calls.append(("set_priority", {"ticket": ticket, "priority": m.pick("P1", "P2", "P3")}))
    if m.chance(0.45):
        calls.append(("assign", {"ticket": ticket, "to": m.name(), "team": m.pick("core", "ui")}))
    tags = m.pick(["bug"], ["bug", "urgent"], ["question"])
    calls.append(("reply", {"ticket": ticket, "body": m.text(), "tags": tags}))
    return calls, m.pick(
        f"Ticket {ticket} is answered.", f"I answered: ticket {ticket} is answered."
    )


def medication(m: Maker) -> tuple[Calls, str]:
    patient = f"P{m.number(4)}-{m.code(2)}"
    calls: Calls = [
        ("get_patient", {"patient": patient}),
        (
            "check_interactions",
            {"drugs": m.pick(["A12"], ["A12", "B7"]), "weight_kg": m.amount(40, 120)},
        ),
    ]
    if m.chance(0.3):
        calls.append(("alert_doctor", {"pager": m.number(4), "severity": m.pick("mid", "high")}))
        return calls, f"The doctor has been alerted about the medication of {patient}."
    calls.append(("set_dose", {"mg": m.random.randrange(5, 200, 5), "times": ["08:00", "20:00"]}))
    if m.chance(0.5):
        calls.append(("remind", {"at": m.time(), "via": m.pick("app", "call")}))
    return calls, f"The medication of {patient} is set."


HELD_OUT: Sequence[Behaviour] = (checkout, translation, inventory, support_ticket, medication)
