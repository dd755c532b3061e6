/** Who the invented shop deals with, and what it sends around: orders, invoices, payments, parcels, sign-ups, of varied sizes and kinds. */
import type { Instant } from '../core/clock.ts'
import { formatTimestamp } from '../core/timestamp.ts'
import type { Chance } from './chance.ts'

/** Every address lies in a domain that is reserved for examples. */
export const CUSTOMERS = [
  { name: 'Zoë Müller', email: 'zoe.mueller@example.com', city: 'Köln', country: 'DE' },
  { name: 'Łukasz Żak', email: 'lukasz.zak@example.org', city: 'Łódź', country: 'PL' },
  { name: '村上 さくら', email: 'sakura@example.net', city: '京都市', country: 'JP' },
  { name: 'María-José Núñez', email: 'mj.nunez@example.com', city: 'A Coruña', country: 'ES' },
  { name: 'Aoife Ní Bhriain', email: 'aoife@example.org', city: 'Gaillimh', country: 'IE' },
  { name: 'Đặng Thị Hương', email: 'huong.dang@example.net', city: 'Đà Nẵng', country: 'VN' },
  { name: 'Олена Шевченко', email: 'olena@example.com', city: 'Харків', country: 'UA' },
  { name: 'ليلى حداد', email: 'layla.haddad@example.org', city: 'عمّان', country: 'JO' },
  { name: "Anne O'Neill", email: 'anne.oneill@example.net', city: 'Belfast', country: 'GB' },
  { name: 'Jean-Luc Béranger', email: 'jl.beranger@example.com', city: 'Nîmes', country: 'FR' },
] as const

export const ARTICLES = [
  { sku: 'TEA-0417', title: 'Darjeeling, 250 g', cents: 1_290 },
  { sku: 'CUP-2201', title: 'Cup, stoneware, ø 9 cm', cents: 1_850 },
  { sku: 'POT-1180', title: 'Teapot “Bartleby”, 1 l', cents: 5_400 },
  { sku: 'BKS-0931', title: 'The Piazza Tales', cents: 1_600 },
  { sku: 'LMP-7710', title: 'Desk lamp, green shade', cents: 8_990 },
  { sku: 'PEN-0052', title: 'Steel nibs, box of 12', cents: 990 },
] as const

/** Those who acted on letters before you came. */
export const OPERATORS = ['mira.hoffmann', 'tomasz.wrobel', 'priya.nair', 'sam.okafor'] as const

export const DISCARD_NOTES = [
  'Customer cancelled by phone, order is closed in the shop.',
  'Duplicate of an order that went through on Tuesday.',
  'Test order of the QA team.',
  'Written by hand into the ledger, see ticket OPS-2214.',
  'Instance was decommissioned last week.',
  'Too old to be of use to anybody; agreed with the shop.',
] as const

export const RETRY_NOTES = [
  null,
  null,
  'Cause is fixed, sending it back.',
  'Partner says they are up again.',
  'Released with 4.12.1.',
] as const

/** A moment at which something is made up. */
export interface Occasion {
  readonly chance: Chance
  readonly now: Instant
}

export const json = (value: object): Buffer => Buffer.from(JSON.stringify(value), 'utf8')

const cents = (amount: number): number => amount / 100

const linesOf = (chance: Chance, count: number) =>
  Array.from({ length: count }, () => {
    const { sku, title, cents: price } = chance.pick(ARTICLES)
    return { sku, title, quantity: chance.whole(1, 4), price: cents(price) }
  })

/** `warehouse` decides what becomes of it. */
export function order({ chance, now }: Occasion, warehouse: string): Buffer {
  const lines = linesOf(chance, chance.isOne(0.06) ? 60 : chance.whole(1, 5))
  return json({
    orderId: `SO-${chance.whole(100_000, 999_999)}`,
    placedAt: formatTimestamp(now),
    customer: chance.pick(CUSTOMERS),
    currency: 'EUR',
    lines,
    total: lines.reduce((sum, { quantity, price }) => sum + quantity * price, 0),
    warehouse,
    ...(chance.isOne(0.2) ? { giftNote: 'Alles Gute zum Geburtstag! 🎂🫖' } : {}),
  })
}

/** Ascending with time, over restarts too: the demo knows by it which invoices are older than itself. */
export const invoiceNumber = (now: Instant): number => Number(now / 1_000_000n) - 1_700_000_000

/** The month of an instant, or the one before. */
const monthOf = (now: Instant, back: 0 | 1): string => {
  const [year = 0, month = 0] = formatTimestamp(now).split('-').map(Number)
  const at = year * 12 + month - 1 - back
  return `${Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`
}

/** One of the month before meets a period whose books are being closed. */
export function invoice({ chance, now }: Occasion, of: 'this month' | 'last month'): Buffer {
  const net = chance.whole(1_000, 90_000)
  return json({
    invoice: `INV-${invoiceNumber(now)}`,
    issuedAt: formatTimestamp(now),
    period: monthOf(now, of === 'this month' ? 0 : 1),
    customer: chance.pick(CUSTOMERS),
    net: cents(net),
    vat: cents(Math.round(net * 0.19)),
    currency: 'EUR',
    lines: linesOf(chance, chance.whole(1, 8)),
    correlationId: chance.uuid(),
  })
}

/** What an old system sends in place of an invoice: no JSON. */
export const oldInvoice = ({ chance, now }: Occasion): Buffer =>
  Buffer.from(
    `<?xml version="1.0" encoding="UTF-8"?>\n<invoice number="${invoiceNumber(now)}">\n  <customer>${chance.pick(CUSTOMERS).name}</customer>\n  <net currency="EUR">${cents(chance.whole(1_000, 90_000))}</net>\n</invoice>\n`,
  )

/** The account is a whole number beyond what a double can hold: its digits must survive. */
export function payment({ chance, now }: Occasion): Buffer {
  const text = JSON.stringify({
    payment: `pay_${chance.hex(16)}`,
    requestedAt: formatTimestamp(now),
    account: '@account',
    amount: { value: chance.whole(990, 48_000), currency: 'EUR' },
    method: chance.pick(['card', 'card', 'sepa', 'invoice']),
    customer: chance.pick(CUSTOMERS).email,
    correlationId: chance.uuid(),
  })
  const account = 9_007_199_254_740_993n + BigInt(chance.whole(0, 4_000_000_000)) * 2n
  return Buffer.from(text.replace('"@account"', String(account)))
}

/** A parcel label as the printer takes it: bytes that are no text. */
export function label({ chance }: Occasion): Buffer {
  const head = Buffer.from('%PDF-1.7\n%\u00e2\u00e3\u00cf\u00d3\n', 'latin1')
  const body = Buffer.from(Array.from({ length: chance.whole(200, 1_500) }, () => chance.whole(0, 255)))
  return Buffer.concat([head, body])
}

export function signUp({ chance, now }: Occasion): Buffer {
  const { name, email, country } = chance.pick(CUSTOMERS)
  const locale = country.toLowerCase()
  return json({ signedUpAt: formatTimestamp(now), name, email, locale, source: 'shop', newsletter: true })
}

/** An event that the shop tells its partners; `parcel` decides what becomes of it. */
export function shopEvent({ chance, now }: Occasion, type: string): Buffer {
  return json({
    id: `evt_${chance.hex(20)}`,
    type,
    at: formatTimestamp(now),
    order: `SO-${chance.whole(100_000, 999_999)}`,
    customer: chance.pick(CUSTOMERS),
    lines: linesOf(chance, chance.whole(1, 3)),
  })
}

const instanceId = (chance: Chance): string => `shop-${String(chance.whole(1, 40)).padStart(3, '0')}`

/** The registration of a shop's instance; one without a region is more than its worker can take. */
export const registration = ({ chance, now }: Occasion, region: string | undefined): Buffer =>
  json({
    instanceId: instanceId(chance),
    plan: chance.pick(['starter', 'business', 'enterprise']),
    registeredAt: formatTimestamp(now),
    owner: chance.pick(CUSTOMERS),
    ...(region === undefined ? {} : { site: { region } }),
    correlationId: chance.uuid(),
  })

/** A key that is to be replaced, in a vault. */
export const keyRotation = ({ chance }: Occasion, vault: string): Buffer =>
  json({
    instanceId: instanceId(chance),
    keyId: `hk_${chance.hex(12)}`,
    vault,
    algorithm: 'HMAC-SHA256',
    correlationId: chance.uuid(),
  })

/** A certificate that runs out. */
export const certificate = ({ chance, now }: Occasion, domain: string): Buffer =>
  json({
    instanceId: instanceId(chance),
    domain,
    challenge: 'dns-01',
    checkedAt: formatTimestamp(now),
    correlationId: chance.uuid(),
  })

/** An alert of the monitoring; there are severities from 1 to 4. */
export const alert = ({ chance, now }: Occasion, severity: string): Buffer =>
  json({
    instanceId: instanceId(chance),
    alertId: `al-${chance.hex(8)}`,
    severity,
    rule: chance.pick(['latency-p99', 'disk-free', 'error-ratio', 'certificate-age']),
    firedAt: formatTimestamp(now),
    labels: {
      cluster: chance.pick(['north', 'south']),
      team: 'shop',
      runbook: 'https://example.org/runbook',
    },
    correlationId: chance.uuid(),
  })
