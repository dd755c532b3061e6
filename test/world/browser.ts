/**
 * A browser for tests: a real Chromium, headless. `BARTLEBY_CHROMIUM` names another one to use. Where there is none it is installed,
 * if that is possible without asking; where that fails the tests are skipped, and a build (`CI=true`) fails instead.
 */
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { describeWith, findOrInstall } from './debian.ts'
import { PATIENCE_MS } from './limits.ts'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** Without a GPU and a sandbox of its own, which containers do not allow. */
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none']

function findChromium(): string | undefined {
  return [process.env.BARTLEBY_CHROMIUM, ...PLACES].find((path) => path !== undefined && existsSync(path))
}

const chromiumPath = findOrInstall(['chromium', 'fonts-dejavu-core'], findChromium)

let browser: Browser | undefined

/** Tests in the browser. */
export function describeBrowser(name: string, body: () => void): void {
  const missing = 'no Chromium was found, nor could it be installed; BARTLEBY_CHROMIUM names one'
  describeWith(chromiumPath, missing, name, (executablePath) => {
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath, args: FLAGS })
    })
    afterAll(() => browser?.close())
    body()
  })
}

export interface View {
  readonly page: Page
  /** What the page complained about: errors of scripts, refusals of its policy, requests that failed. */
  readonly complaints: readonly string[]
  close(): Promise<void>
}

export interface ViewOptions {
  readonly theme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
}

/** A new window, with cookies and storage of its own. */
export async function openView(url: string, options: ViewOptions = {}): Promise<View> {
  if (browser === undefined) throw new Error('openView is for tests under describeBrowser')
  const { theme = 'light', width = 1_280, height = 800 } = options
  const context: BrowserContext = await browser.newContext({
    baseURL: url,
    colorScheme: theme,
    viewport: { width, height },
    // What moves would be photographed in the middle of it.
    reducedMotion: 'reduce',
    timezoneId: 'UTC',
    locale: 'en-GB',
  })
  const page = await context.newPage()
  page.setDefaultTimeout(PATIENCE_MS)
  const complaints: string[] = []
  // Of every tab of the window.
  context.on('console', (message) => {
    if (message.type() === 'error') complaints.push(message.text())
  })
  context.on('weberror', (error) => complaints.push(error.error().message))
  return { page, complaints, close: () => context.close() }
}

/** Keeps a picture of what the browser showed when a test failed, and says where. */
export async function pictureOfFailure({ page }: View, test: string): Promise<void> {
  const path = join(tmpdir(), 'bartleby-failures', `${test.replaceAll(/\W+/g, '-').slice(0, 80)}.png`)
  await page.screenshot({ path })
  console.error(`what the browser showed: ${path}`)
}
