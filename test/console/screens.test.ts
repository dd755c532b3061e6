/**
 * Every screen, in both themes and three widths, on the demo: nothing serious for assistive technology, nothing outside the view, no
 * complaint of the browser, no request to another origin, and a picture of it. `npm run docs:images` keeps the pictures in docs/images.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Page, Request } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { RedriveClient, type RedriveDetail, type RedrivePlanRequest } from '../../src/client/index.ts'
import { loadConfig } from '../../src/config/index.ts'
import { serveDemo } from '../../src/demo/serve-demo.ts'
import type { RunningServer } from '../../src/http/serve.ts'
import { DEMO_SIGNATURES } from '../../src/sources/engines/demo-roles.ts'
import { describeBrowser, openView, type View } from '../world/browser.ts'

const IMAGES = fileURLToPath(new URL('../../docs/images', import.meta.url))
const keepsImages = process.env.BARTLEBY_DOCS_IMAGES === '1'
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

interface Screen {
  /** Of its picture. */
  readonly name: string
  readonly path: () => Promise<string> | string
  /** What must be there before it is looked at. */
  readonly ready: string
  /** What is done on it before that. */
  readonly act?: (page: Page) => Promise<void>
}

const screens: readonly Screen[] = [
  { name: 'overview', path: () => '/', ready: 'main canvas' },
  { name: 'signatures', path: () => '/signatures', ready: 'main tbody tr' },
  {
    name: 'signature',
    path: () => `/signatures/${DEMO_SIGNATURES.healingSignature}`,
    ready: 'main tbody tr',
  },
  { name: 'letters', path: () => '/letters?query=status%3Apending', ready: 'main tbody tr' },
  { name: 'letter', path: () => someLetter(''), ready: 'main [role=tabpanel]' },
  { name: 'edit', path: () => someLetter('/edit'), ready: 'main textarea' },
  {
    name: 'plan',
    path: () => `/signatures/${DEMO_SIGNATURES.stormSignature}`,
    act: (page) => page.getByRole('button', { name: 'Retry all…' }).click(),
    ready: '[role=dialog] .plan-letters summary',
  },
  { name: 'redrives', path: () => redrivesWithSome(), ready: 'main .redrive-words' },
  { name: 'redrive', path: () => endedRedrive(), ready: 'main tbody tr' },
  { name: 'queues', path: () => '/sources/queues', ready: 'main tbody tr' },
  { name: 'engines', path: () => '/sources/engines', ready: 'main tbody tr' },
  { name: 'outbox', path: () => '/sources/outbox', ready: 'main h2' },
  { name: 'webhooks', path: () => '/sources/webhooks', ready: 'main tbody tr' },
  { name: 'kafka', path: () => '/sources/kafka', ready: 'main h1' },
  { name: 'azure', path: () => '/sources/azure', ready: 'main h1' },
  { name: 'history', path: () => '/history', ready: 'main tbody tr' },
  { name: 'settings', path: () => '/settings', ready: 'main h2' },
]
const THEMES = ['light', 'dark'] as const

let server: RunningServer
/** One window for all screens, whose scripts are loaded once. */
let view: View
let folder: string

async function someLetter(then: string): Promise<string> {
  const { items } = await server.office.letters.list({
    signature: DEMO_SIGNATURES.healingSignature,
    status: 'Pending',
  })
  const letter = items.at(-1)
  if (letter === undefined) throw new Error('the demo has no letter that heals')
  return `/letters/${letter.engine}/${encodeURIComponent(letter.rowKey)}${then}`
}

/** What was started here: one that ended, and one that is still at it. */
const started: RedriveDetail[] = []

async function redrivesWithSome(): Promise<string> {
  const redrives = new RedriveClient({ url: server.url })
  const begin = async (request: RedrivePlanRequest) =>
    started.push(await redrives.start((await redrives.plan(request)).id))
  await begin({
    signature: DEMO_SIGNATURES.healingSignature,
    action: 'retry',
    canary: 5,
    stopRule: { percent: 20, of: 100 },
    reason: 'the cause is gone',
  })
  await expect.poll(async () => (await redrives.read(started[0]?.id ?? '')).state).toBe('done')
  await begin({
    signature: DEMO_SIGNATURES.stormSignature,
    action: 'retry',
    rate: 2,
    reason: 'the storm is over',
  })
  await expect.poll(async () => (await redrives.read(started[1]?.id ?? '')).counts.sent).toBeGreaterThan(1)
  return '/redrives'
}

async function endedRedrive(): Promise<string> {
  const [ended, slow] = started
  if (ended === undefined || slow === undefined) throw new Error('the list of redrives was not shown before')
  await new RedriveClient({ url: server.url }).cancel(slow.id, 'shown long enough')
  return `/redrives/${ended.id}`
}

interface Finding {
  readonly id: string
  readonly impact: string | null
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
}

interface Axe {
  run(options: {
    readonly runOnly: readonly string[]
    readonly resultTypes: readonly string[]
  }): Promise<{ readonly violations: readonly Finding[] }>
}

/** The rules of WCAG 2.2 AA, by their tags; what is only good practice is left out. */
const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']
/** All that a theme can change. */
const CONTRAST = ['color-contrast']

/** What axe finds that is serious or worse. */
async function seriousFindings({ page }: View, runOnly: readonly string[]): Promise<readonly string[]> {
  const violations = await page.evaluate(
    // What the script below has left there.
    async (options) => (await (globalThis as unknown as { axe: Axe }).axe.run(options)).violations,
    // All that is right would be described too.
    { runOnly, resultTypes: ['violations'] },
  )
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`))
}

const WIDE = { width: 1_440, height: 900 }
const NARROWER = [
  { width: 1_024, height: 768 },
  { width: 390, height: 844 },
]

/** What can be pressed, and what says a number or a status, but is not within the width of the view. */
const outside = (page: Page): Promise<readonly string[]> =>
  page.evaluate(() => {
    const scrolls = (element: Element): boolean =>
      element.closest('pre, .mantine-ScrollArea-viewport, textarea') !== null
    return [
      ...document.querySelectorAll('main a, main button, main .badge, main .numbers, header button, nav a'),
    ]
      .filter((element) => element.checkVisibility() && !scrolls(element))
      .flatMap((element) => {
        const { left, right, width } = element.getBoundingClientRect()
        const isClosedRail = element.closest('nav') !== null && right <= 0
        if (width <= 1 || isClosedRail || (left >= -1 && right <= window.innerWidth + 1)) return []
        return [
          `${element.tagName} ${element.textContent?.slice(0, 40)} ${Math.round(left)} to ${Math.round(right)}`,
        ]
      })
  })

async function keepPicture(page: Page, name: string): Promise<void> {
  const path = join(folder, name)
  await page.screenshot({ path })
  // A page without anything on it takes three kilobytes.
  expect(statSync(path).size, name).toBeGreaterThan(15_000)
}

describeBrowser('a screen of the console', () => {
  beforeAll(async () => {
    folder = keepsImages ? IMAGES : mkdtempSync(join(tmpdir(), 'bartleby-images-'))
    const config = loadConfig({ env: { BARTLEBY_LOG_LEVEL: 'silent' }, flags: { port: 0 } })
    server = await serveDemo(config, { storeIsGiven: false, logLevelIsGiven: true, say: () => {} })
    view = await openView(server.url)
  })

  afterAll(async () => {
    await view?.close()
    await server?.stop()
    if (!keepsImages) rmSync(folder, { recursive: true, force: true })
  })

  it.each(screens)('$name is readable by everybody, in both themes, and has its picture', async (screen) => {
    const { name, path, ready, act } = screen
    const { page, complaints } = view
    const complaintsBefore = complaints.length
    const origins = new Set<string>()
    const asked = (request: Request) => origins.add(new URL(request.url()).origin)
    page.on('request', asked)
    try {
      await page.emulateMedia({ colorScheme: 'light' })
      await page.setViewportSize(WIDE)
      await page.goto(await path())
      await act?.(page)
      await page.locator(ready).first().waitFor()
      // Evaluated and not added as a script, which the policy of the page forbids.
      await page.evaluate(axe)
      expect(await seriousFindings(view, WCAG), `${name} light`).toEqual([])
      await keepPicture(page, `${name}-light.png`)
      await page.emulateMedia({ colorScheme: 'dark' })
      expect(await seriousFindings(view, CONTRAST), `${name} dark`).toEqual([])
      await keepPicture(page, `${name}-dark.png`)
      expect(await outside(page), `${name} at ${WIDE.width}`).toEqual([])
      for (const size of NARROWER) {
        await page.setViewportSize(size)
        expect(await outside(page), `${name} at ${size.width}`).toEqual([])
        expect(
          await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth),
          `${name} is wider than ${size.width}`,
        ).toBeLessThanOrEqual(0)
      }
      expect(await seriousFindings(view, WCAG), `${name} dark at 390`).toEqual([])
      expect(complaints.slice(complaintsBefore), name).toEqual([])
      expect([...origins], name).toEqual([server.url])
    } finally {
      page.off('request', asked)
    }
  })

  it('is in the documentation, and nothing else is', () => {
    const expected = screens.flatMap(({ name }) => THEMES.map((theme) => `${name}-${theme}.png`))
    expect(readdirSync(IMAGES).sort()).toEqual(expected.sort())
  })

  it('loads less than 300 KB of script, as it goes over the wire, for the first page', async () => {
    const first = await openView(server.url)
    try {
      await first.page.goto('/')
      await first.page.locator('main canvas').waitFor()
      const bytes = await first.page.evaluate(() =>
        performance
          .getEntriesByType('resource')
          .filter(({ name }) => name.endsWith('.js'))
          // Entries of this type say how large they are.
          .reduce((sum, entry) => sum + (entry as PerformanceResourceTiming).encodedBodySize, 0),
      )
      expect(bytes).toBeGreaterThan(50_000)
      expect(bytes).toBeLessThan(300_000)
    } finally {
      await first.close()
    }
  })
})
