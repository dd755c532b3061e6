/** Opens the console as a person would, in a real browser, and takes the time until a page can be used. */
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

const PLACES = [process.env.BARTLEBY_CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome']
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage']

export interface PageTime {
  readonly name: string
  /** Until it could be used, for every time it was opened. */
  readonly ms: readonly number[]
}

/** What must be on a page before a person can use it. */
const PAGES = [
  { name: 'overview, nothing cached', path: '/', ready: ['main h1', 'main table tbody tr'], cold: true },
  { name: 'overview', path: '/', ready: ['main h1', 'main table tbody tr'], cold: false },
  { name: 'signatures', path: '/signatures', ready: ['main table tbody tr'], cold: false },
  { name: 'letters', path: '/letters', ready: ['main table tbody tr'], cold: false },
] as const

export async function launchBrowser(): Promise<Browser> {
  const executablePath = PLACES.find((place) => place !== undefined && existsSync(place))
  if (executablePath === undefined) throw new Error('no Chromium was found; BARTLEBY_CHROMIUM names one')
  return chromium.launch({ executablePath, args: FLAGS })
}

/** Opens every page `loads` times. */
export async function timePages(browser: Browser, url: string, loads: number): Promise<PageTime[]> {
  const times: PageTime[] = []
  for (const { name, path, ready, cold } of PAGES) {
    const warm = cold ? null : await browser.newContext()
    const ms: number[] = []
    for (let load = 0; load < loads; load++) {
      const context = warm ?? (await browser.newContext())
      const page = await context.newPage()
      const startMs = performance.now()
      await page.goto(url + path, { waitUntil: 'commit' })
      for (const selector of ready) await page.locator(selector).first().waitFor()
      ms.push(performance.now() - startMs)
      await page.close()
      if (warm === null) await context.close()
    }
    await warm?.close()
    times.push({ name, ms })
  }
  return times
}

/** How many bytes of script the first page loads, as they go over the wire. */
export async function scriptBytes(browser: Browser, url: string): Promise<number> {
  const page = await browser.newPage()
  await page.goto(url)
  await page.locator('main canvas').waitFor()
  const bytes = await page.evaluate(() =>
    performance
      .getEntriesByType('resource')
      // Entries of this type are resources; the names are addresses.
      .filter((entry): entry is PerformanceResourceTiming => entry.name.endsWith('.js'))
      .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
  )
  await page.close()
  return bytes
}
