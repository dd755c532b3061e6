import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatKsuid } from './ksuid.ts'
import { maskText } from './mask.ts'
import { SIGNATURE_VERSION, signatureOf } from './signature.ts'
import type { ErrorDescription } from './thrown.ts'

const error = (
  errorMessage: string,
  errorClass = 'Error',
  errorStack: string | null = null,
): ErrorDescription => ({
  errorClass,
  errorMessage,
  errorStack,
})
const fingerprint = (...texts: Parameters<typeof error>) => signatureOf(error(...texts)).fingerprint
const title = (...texts: Parameters<typeof error>) => signatureOf(error(...texts)).title

const JS_STACK = `TypeError: Cannot read properties of undefined (reading 'total')
    at Array.map (<anonymous>)
    at Client.query (/srv/shop/node_modules/pg/lib/client.js:526:17)
    at async Payments.charge [as run] (file:///srv/shop/src/payments.ts:88:14)
    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)`
const JAVA_STACK = `java.lang.IllegalStateException: no rate for EUR
\tat java.base/java.util.Optional.orElseThrow(Optional.java:403)
\tat com.acme.billing.RateTable.lambda$find$3(RateTable.java:44)
\tat com.acme.billing.Invoicer.run(Invoicer.java:12)`
const PYTHON_STACK = `Traceback (most recent call last):
  File "/srv/app/main.py", line 3, in main
    charge(order)
  File "/srv/app/billing/charge.py", line 9, in charge
    json.loads(body)
  File "/usr/lib/python3.12/json/decoder.py", line 337, in decode
ValueError: Expecting value: line 1 column 1 (char 0)`
const GO_STACK = `goroutine 17 [running]:
panic({0x52e0a0, 0xc000014090})
\t/usr/local/go/src/runtime/panic.go:884 +0x213
github.com/acme/billing/rates.(*Table).Find(0xc00011c000, {0x4d1b2c, 0x3})
\t/home/ci/build/rates/table.go:41 +0x1d
created by main.main in goroutine 1`

describe('signatures of version 1', () => {
  // These are in people's stores. An algorithm that gives others needs a new SIGNATURE_VERSION, and a table of its own.
  const KNOWN: readonly (readonly [fingerprint: string, title: string, error: ErrorDescription])[] = [
    [
      '1-8955a1116b784053',
      'Cannot read properties of undefined (reading <text>) at Payments.charge (payments.ts)',
      error("Cannot read properties of undefined (reading 'total')", 'TypeError', JS_STACK),
    ],
    [
      '1-b6ca0545c4a9a7f3',
      'no rate for EUR at RateTable.lambda$find$# (RateTable.java)',
      error('no rate for EUR', 'java.lang.IllegalStateException', JAVA_STACK),
    ],
    [
      '1-2e0019fc4166631c',
      'Expecting value: line # column # (char #) at charge (charge.py)',
      error('Expecting value: line 1 column 1 (char 0)', 'ValueError', PYTHON_STACK),
    ],
    [
      '1-25c189abce7e83d6',
      'assignment to entry in nil map at rates.(*Table).Find (table.go)',
      error('assignment to entry in nil map', 'panic', GO_STACK),
    ],
    ['1-ab993587fabbcd52', 'connect ECONNREFUSED <ip>', error('connect ECONNREFUSED 10.0.3.7:5432', 'Error')],
    [
      '1-b2a0dfd311eb7806',
      'connect ETIMEDOUT <ip>',
      error('connect ETIMEDOUT fe80::1ff:fe23:4567:890a', 'Error'),
    ],
    [
      '1-d1dd0a4c1fcecb58',
      'duplicate key value violates unique constraint <text>',
      error('duplicate key value violates unique constraint "orders_pkey"', 'DatabaseError'),
    ],
    [
      '1-98954b7629cfb4c8',
      'order # of <email> is too old: <time>',
      error(
        'order 0189c2a1-7b3e-7c11-9a43-1f2e3d4c5b6a of bob@example.com is too old: 2027-01-01T10:00:00.123Z',
        'OrderError',
      ),
    ],
    [
      '1-b92d88be4c08401d',
      "can't open <path>: it's gone, retry in #s",
      error("can't open /srv/data/in-17.csv: it's gone, retry in 2.5s", 'IOError'),
    ],
    [
      '1-cce4bd6c198d955e',
      'POST <url> answered #',
      error('POST https://api.example.com/v1/charges?key=17 answered 502', 'HttpError'),
    ],
    [
      '1-789ca51be9347a9f',
      'Unexpected token <text>... is not valid JSON',
      error(`Unexpected token '<', "<!DOCTYPE "... is not valid JSON`, 'SyntaxError'),
    ],
    [
      '1-a95b86c99c241f21',
      'item # was rejected, like #',
      error('item 2bTqf0Xy8yVQfG7uYdZQm3nAbCd was rejected, like 01ARZ3NDEKTSV4RRFFQ69G5FAV', 'Rejected'),
    ],
    [
      '1-2700a0f600a82e6e',
      'missing ids: # (#)',
      error('missing ids: 17, 18, 19 (0x7fff, 9f86d081)', 'Error'),
    ],
    [
      '1-a4da766a2360494f',
      'sent <time>, # <time> # <time> GMT by mailer-#',
      error('sent Mon, 02 Jan 2006 15:04:05 GMT by mailer-3', 'Late'),
    ],
    ['1-ab5aa2def1a76474', 'Error', error('', 'Error')],
    ['1-75a11da44c802486', 'no error message', error('', '')],
  ]

  it.each(KNOWN)('%s stays what it is: %s', (known, knownTitle, given) => {
    expect(SIGNATURE_VERSION).toBe(1)
    expect(signatureOf(given)).toEqual({
      fingerprint: known,
      errorClass: given.errorClass,
      title: knownTitle,
    })
  })
})

// Of the years until 2050, whose ids begin with a digit.
const aKsuid = fc.bigInt({ min: 200_000_000n << 128n, max: 1_130_000_000n << 128n }).map(formatKsuid)
const aHexId = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 8, maxLength: 40 })
const anId = fc.oneof(fc.nat().map(String), fc.uuid(), aHexId, aKsuid, fc.ulid())
const aSegment = fc.string({ unit: fc.constantFrom(...'abcxyz0189_-.'), minLength: 1, maxLength: 12 })
const aPath = fc.array(aSegment, { minLength: 2, maxLength: 6 }).map((parts) => `/${parts.join('/')}/x`)
const aQuotation = fc
  .tuple(fc.constantFrom('"', "'", '`'), fc.string({ unit: 'grapheme' }))
  .map(([quote, text]) => `${quote}${text.replace(/["'`\\]/g, '')}${quote}`)
const anInstant = fc
  .date({ min: new Date('1971-01-01'), max: new Date('2999-01-01'), noInvalidDate: true })
  .map((date) => date.toISOString())
const aUrl = fc
  .tuple(fc.webUrl({ withQueryParameters: true }), fc.nat())
  .map(([url, n]) => `${url.replace(/['"`<>]/g, '')}/${n}`)
const anEmail = fc.tuple(aHexId, fc.domain()).map((parts) => parts.join('@'))

/** What one error says of many things, and another of others of the same kind. */
const anOccurrence = fc.record({
  id: anId,
  text: aQuotation,
  path: aPath,
  url: aUrl,
  email: anEmail,
  ip: fc.oneof(
    fc.ipV4(),
    fc.ipV6().filter((ip) => /\d/.test(ip) && ip.split(':').length > 2),
  ),
  at: anInstant,
  amount: fc.oneof(fc.integer().map(String), fc.double({ noNaN: true, noDefaultInfinity: true }).map(String)),
})
const told = (it: typeof anOccurrence extends fc.Arbitrary<infer T> ? T : never) =>
  `order ${it.id} (${it.text}): cannot read ${it.path} from ${it.url} as ${it.email} via ${it.ip} at ${it.at}, amount=${it.amount}.`

describe('errors with one cause', () => {
  it('have one fingerprint and one title, whatever numbers, ids, quotations, paths, urls and times they name', () => {
    fc.assert(
      fc.property(anOccurrence, anOccurrence, (one, other) => {
        expect(signatureOf(error(told(one)))).toEqual(signatureOf(error(told(other))))
        expect(title(told(one))).toBe(
          'order # (<text>): cannot read <path> from <url> as <email> via <ip> at <time>, amount=#.',
        )
      }),
      { numRuns: 1_000 },
    )
  })

  it('may list more or fewer of the same, and differ in case, white space and line numbers', () => {
    expect(fingerprint('missing 1, 2, 3')).toBe(fingerprint('missing 17'))
    expect(fingerprint(`missing "a", 'b'`)).toBe(fingerprint('missing "a"'))
    expect(fingerprint('Connection\r\n\tLost ')).toBe(fingerprint('connection lost'))
    expect(fingerprint('x', 'E', JS_STACK)).toBe(fingerprint('x', 'E', JS_STACK.replaceAll('88:14', '91:2')))
  })

  it('are told apart by class, by words and by the place in the application', () => {
    fc.assert(
      fc.property(
        fc.tuple(fc.stringMatching(/^\w{1,30}$/), fc.stringMatching(/^\w{1,30}$/)),
        ([one, other]) => {
          fc.pre(one !== other)
          expect(fingerprint('lost', one)).not.toBe(fingerprint('lost', other))
        },
      ),
    )
    expect(fingerprint('connection lost')).not.toBe(fingerprint('connection refused'))
    expect(fingerprint('b', 'A')).not.toBe(fingerprint('', 'A b'))
    expect(fingerprint('x', 'E', JS_STACK)).not.toBe(
      fingerprint('x', 'E', JS_STACK.replace('charge', 'refund')),
    )
    expect(fingerprint('x', 'E', JS_STACK)).not.toBe(fingerprint('x', 'E'))
  })
})

describe('the place of an error', () => {
  const place = (stack: string, message = '') => title(message, '', stack)

  it('is the topmost frame of the application, not of its runtime or libraries', () => {
    expect(place(JS_STACK)).toBe('at Payments.charge (payments.ts)')
    expect(place(JAVA_STACK)).toBe('at RateTable.lambda$find$# (RateTable.java)')
    expect(place(PYTHON_STACK)).toBe('at charge (charge.py)')
    expect(place(GO_STACK)).toBe('at rates.(*Table).Find (table.go)')
  })

  it.each([
    ['    at new Order (C:\\shop\\order.js:1:2)', 'at Order (order.js)'],
    ['    at Object.<anonymous> (/srv/shop/order.js:1:2)', 'at (order.js)'],
    ['    at async file:///srv/shop/order.js?v=17:1:2', 'at (order.js)'],
    ['    at async Promise.all (index 0)', 'no error message'],
    ['    at eval (eval at run (/srv/shop/order.js:1:2), <anonymous>:1:1)', 'no error message'],
    ['    at run (C:\\shop\\node_modules\\pg\\x.js:1:2)', 'no error message'],
    ['\tat Orders.ship(Unknown Source)', 'no error message'],
    ['Traceback (most recent call last):\n  File "<stdin>", line 1, in <module>', 'no error message'],
    ['Traceback (most recent call last):\n  File "/srv/a.py", line 1, in <module>', 'at (a.py)'],
    ['goroutine 1 [running]:\ncreated by main.main\n\t/srv/main.go:1 +0x1', 'no error message'],
  ])('of %j is: %s', (stack, expected) => {
    expect(place(stack)).toBe(expected)
  })

  it('is found behind a message longer than what is read of the stack, and at the end of a long Python one', () => {
    const message = 'x'.repeat(100_000)
    const stack = `Error: ${message}\n    at ship (/srv/shop/order.js:1:2)`
    expect(title(message, 'Error', stack)).toMatch(/^x+ at ship \(order\.js\)$/)
    const frames = '  File "/srv/app/main.py", line 3, in main\n    recurse()\n'.repeat(1_000)
    expect(place(`Traceback (most recent call last):\n${frames}  File "/srv/a.py", line 1, in f`)).toBe(
      'at f (a.py)',
    )
  })
})

describe('hostile text', () => {
  const anything = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 3_000 }),
    fc.string({ unit: fc.constantFrom(...'a1f0 \'"`<>()/\\:.,-+@=#\n\0\ud800\udc00e') }),
  )

  it('never throws, and gives a storable title of at most 200 characters', () => {
    fc.assert(
      fc.property(anything, anything, anything, (errorClass, errorMessage, errorStack) => {
        const signature = signatureOf({ errorClass, errorMessage, errorStack })
        expect(signature.fingerprint).toMatch(/^1-[0-9a-f]{16}$/)
        for (const text of [signature.title, signature.errorClass]) {
          expect(text.length).toBeLessThanOrEqual(200)
          expect(text.isWellFormed()).toBe(true)
          expect(text).not.toMatch(/\p{Cc}/u)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('masks nothing further in a title', () => {
    fc.assert(
      fc.property(anOccurrence, (it) => {
        const masked = title(told(it))
        expect(maskText(masked, 200, 4_000)).toBe(masked)
      }),
    )
  })

  it('costs the same at a megabyte as at some kilobytes, whatever it repeats', () => {
    const bait = [
      'a',
      '.',
      '"',
      " '",
      '1,',
      'aa:/',
      '/',
      ':',
      '\\"',
      'a@.',
      ' ',
      'é',
      'at (',
      'File "',
      '1:1:',
      '0-0-',
    ]
    for (const piece of [...bait, ...bait.map((one) => `${one}\n`)]) {
      const small = piece.repeat(10_000 / piece.length)
      const large = piece.repeat(1_000_000 / piece.length)
      // Time of this thread alone: how busy the machine is says nothing. Without bounds it would be seconds.
      const before = process.threadCpuUsage()
      const signature = signatureOf(error(large, large, large))
      const { user, system } = process.threadCpuUsage(before)
      expect(user + system).toBeLessThan(50_000)
      expect(signature).toEqual(signatureOf(error(small, small, small)))
    }
  })
})
