// Books a room with the client that openapi-typescript and openapi-fetch make.
import createClient from "openapi-fetch";
import type { paths } from "./roombook";

const [host, day] = process.argv.slice(2);
// The second parameter selects JSON: responses can be CSV and JSONP too.
const { POST } = createClient<paths, "application/json">({ baseUrl: host });

function expectData<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const signIn = expectData(
  await POST("/api/sign-in", {
    body: { EmailAddress: "demo@roombook.example", Password: "quiet-harbour-42" },
  }),
);
const Token = signIn.Token!;
const found = expectData(
  await POST("/api/locations/search", {
    body: { Token, Query: "Denver, CO", Filters: { CapacityLow: 6, CapacityHigh: 8 } },
  }),
);
const room = found.Centers![0].MeetingRooms![0];
const created = expectData(
  await POST("/api/reservations/create", {
    body: {
      Token,
      MeetingRoomId: room.Id!,
      StartDate: `${day}T09:00:00`,
      EndDate: `${day}T10:00:00`,
    },
  }),
);
const refused = await POST("/api/reservations/checkout", {
  body: { Token, ReservationId: 2_000_000_000 },
});
if (refused.error?.Error?.Summary !== "NotFound") throw new Error(JSON.stringify(refused));
const booked = expectData(
  await POST("/api/reservations/checkout", {
    body: { Token, ReservationId: created.Reservation!.Id!, UseSavedPaymentInfo: true },
  }),
);
console.log(booked.Status);
