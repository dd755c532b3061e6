/** People, contents and errors of the invented shop that more than one part uses. */
import type { ErrorDescription } from '../../core/thrown.ts'
import { formatTimestamp } from '../../core/timestamp.ts'
import type { Chance } from './chance.ts'
import type { Occasion } from './story.ts'

/** Domains are reserved for examples. */
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

const ARTICLES = [
  { sku: 'TEA-0417', title: 'Darjeeling, 250 g', cents: 1_290 },
  { sku: 'CUP-2201', title: 'Cup, stoneware, ø 9 cm', cents: 1_850 },
  { sku: 'POT-1180', title: 'Teapot “Bartleby”, 1 l', cents: 5_400 },
  { sku: 'BKS-0931', title: 'The Piazza Tales', cents: 1_600 },
  { sku: 'LMP-7710', title: 'Desk lamp, green shade', cents: 8_990 },
  { sku: 'PEN-0052', title: 'Steel nibs, box of 12', cents: 990 },
] as const

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

export const json = (value: object): Buffer => Buffer.from(JSON.stringify(value), 'utf8')

export const cents = (amount: number): number => amount / 100

export const linesOf = (chance: Chance, count: number) =>
  Array.from({ length: count }, () => {
    const { sku, title, cents: price } = chance.pick(ARTICLES)
    return { sku, title, quantity: chance.whole(1, 4), price: cents(price) }
  })

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

/** An event that the shop tells its partners. */
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

/** What comes of an error that a program in JavaScript throws. */
export function thrown(
  errorClass: string,
  errorMessage: string,
  frames: readonly string[],
  at = '    at ',
): ErrorDescription {
  const stack = [`${errorClass}: ${errorMessage}`, ...frames.map((frame) => `${at}${frame}`)]
  return { errorClass, errorMessage, errorStack: stack.join('\n') }
}

/** The same in Python, whose stacks end with where it happened. */
export function raised(
  errorClass: string,
  errorMessage: string,
  frames: readonly string[],
): ErrorDescription {
  const stack = ['Traceback (most recent call last):', ...frames, `${errorClass}: ${errorMessage}`]
  return { errorClass, errorMessage, errorStack: stack.join('\n') }
}

/** An error to be thrown that is described as this. */
export function errorOf({ errorClass, errorMessage, errorStack }: ErrorDescription): Error {
  const error = new Error(errorMessage)
  error.name = errorClass
  error.stack = errorStack ?? ''
  return error
}
