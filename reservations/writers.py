"""Reservations as their serializers write them, by plain functions.

The fast path of every answer that holds a ReservationInfo. It says what `ReservationInfo` in
serializers.py says, which documents it, sorts CSV columns and is what tests hold it to.
"""

from centers.writers import Telling, Told, center_full, room_info, service_info, told
from reservations.records import AllowanceUsageRecord, ReservationRecord, ServiceOptionRecord
from roombook.api.serializers import to_json_number


def reservation_info(details: ReservationRecord, telling: Telling) -> Told:
    services = [service_info(each, telling) for each in details.center.services_on_offer]
    return told(
        {
            "Id": details.row.id,
            "Start": details.start.isoformat(timespec="seconds"),
            "End": details.end.isoformat(timespec="seconds"),
            "Center": center_full(details.center, telling, services),
            "MeetingRoom": room_info(details.meeting_room, services, telling),
            "Services": [_option(each) for each in details.services],
            "Attendees": [
                told(
                    {
                        "Id": each.id,
                        "Name": each.name,
                        "EmailAddress": each.email_address,
                        "CompanyName": each.company_name,
                        "IsCreator": each.is_creator,
                    }
                )
                for each in details.attendees
            ],
            "TotalCost": to_json_number(details.row.total_cost),
            "LineItems": [
                told(
                    {
                        "Amount": each.amount,
                        "Description": each.description,
                        "Total": to_json_number(each.total),
                        "Type": each.type,
                        "Rate": each.rate,
                        "ServiceId": each.service_id,
                        "AllowanceId": each.allowance_id,
                    }
                )
                for each in details.line_items
            ],
            "NumberOfAttendees": details.row.number_of_attendees,
            "Allowances": [_usage(each) for each in details.allowances],
            "CanApplyAllowances": details.can_apply_allowances,
            "UsableAllowances": [_usage(each) for each in details.usable_allowances],
            "RoomCost": to_json_number(details.room_cost),
            "Promotion": details.promotion,
            "Status": details.row.status,
        }
    )


def _option(option: ServiceOptionRecord) -> Told:
    hours = option.duration_hours
    return told(
        {
            "ServiceId": option.service_id,
            "ServiceName": option.service_name,
            "Selected": option.selected,
            "NeedsDuration": option.needs_duration,
            "NeedsQuantity": option.needs_quantity,
            "DurationHours": None if hours is None else to_json_number(hours),
            "Quantity": option.quantity,
        }
    )


def _usage(usage: AllowanceUsageRecord) -> Told:
    details = usage.reservation
    return {
        "Reservation": {
            "Id": details.row.id,
            "Start": details.start.isoformat(timespec="seconds"),
            "End": details.end.isoformat(timespec="seconds"),
            "Status": details.row.status,
        },
        "Allowance": told({"Description": usage.allowance.description, "Id": usage.allowance.id}),
        "NumberOfHours": usage.number_of_hours,
        "DiscountApplied": to_json_number(usage.discount_applied),
        "InUse": usage.in_use,
    }
