/** The screens and their addresses. Filters are part of the address, so that every view can be linked to. */
import { createRootRoute, createRoute, createRouter, type SearchSchemaInput } from '@tanstack/react-router'
import { RANGES, type Range } from './api/types.ts'
import { Frame } from './frame/frame.tsx'
import { BrokenScreen, lazyScreen } from './frame/lazy-screen.tsx'
import { Lost } from './frame/lost.tsx'
import { OverviewScreen } from './overview/overview-screen.tsx'

/** The texts among the parameters of an address that a screen knows; everything else is dropped. */
function texts<Name extends string>(...names: readonly Name[]) {
  return (given: Record<string, unknown> & SearchSchemaInput): { readonly [Key in Name]?: string } => {
    const found: { [Key in Name]?: string } = {}
    for (const name of names) {
      const value = given[name]
      if (typeof value === 'string' && value !== '') found[name] = value
      else if (typeof value === 'number') found[name] = String(value)
    }
    return found
  }
}

const root = createRootRoute({ component: Frame, notFoundComponent: Lost })

/** The time that a chart shows. */
function rangeOf(given: Record<string, unknown> & SearchSchemaInput): { readonly range?: Range } {
  const range = RANGES.find((known) => known === given.range)
  return range === undefined ? {} : { range }
}

const overview = createRoute({
  getParentRoute: () => root,
  path: '/',
  validateSearch: rangeOf,
  component: OverviewScreen,
})

const signatures = createRoute({
  getParentRoute: () => root,
  path: '/signatures',
  validateSearch: texts('source', 'engine', 'originalQueue'),
  component: lazyScreen(async () => (await import('./signatures/signatures-screen.tsx')).SignaturesScreen),
})

const signature = createRoute({
  getParentRoute: () => root,
  path: '/signatures/$signature',
  validateSearch: rangeOf,
  component: lazyScreen(async () => (await import('./signatures/signature-screen.tsx')).SignatureScreen),
})

const letters = createRoute({
  getParentRoute: () => root,
  path: '/letters',
  // `query` is the text of the query bar, where an empty one asks for all letters; `panel` is the letter shown beside the list, as
  // `engine/rowKey`.
  validateSearch: (given: Record<string, unknown> & SearchSchemaInput) => ({
    ...(given.query === '' ? { query: '' } : {}),
    ...texts('query', 'panel')(given),
  }),
  component: lazyScreen(async () => (await import('./letters/letters-screen.tsx')).LettersScreen),
})

const letter = createRoute({
  getParentRoute: () => root,
  path: '/letters/$engine/$rowKey',
  validateSearch: texts('tab'),
  component: lazyScreen(async () => (await import('./letter/letter-screen.tsx')).LetterScreen),
})

const edit = createRoute({
  getParentRoute: () => root,
  path: '/letters/$engine/$rowKey/edit',
  component: lazyScreen(async () => (await import('./letter/edit-screen.tsx')).EditScreen),
})

const redrives = createRoute({
  getParentRoute: () => root,
  path: '/redrives',
  component: lazyScreen(async () => (await import('./redrives/redrives-screen.tsx')).RedrivesScreen),
})

const redrive = createRoute({
  getParentRoute: () => root,
  path: '/redrives/$id',
  // Which of its letters are listed.
  validateSearch: texts('outcome'),
  component: lazyScreen(async () => (await import('./redrives/redrive-screen.tsx')).RedriveScreen),
})

const queues = createRoute({
  getParentRoute: () => root,
  path: '/sources/queues',
  validateSearch: texts('queue'),
  component: lazyScreen(async () => (await import('./sources/queues-screen.tsx')).QueuesScreen),
})

const engines = createRoute({
  getParentRoute: () => root,
  path: '/sources/engines',
  component: lazyScreen(async () => (await import('./sources/engines-screen.tsx')).EnginesScreen),
})

const outbox = createRoute({
  getParentRoute: () => root,
  path: '/sources/outbox',
  // Which messages are listed, under the names of the API.
  validateSearch: texts('outbox', 'status', 'eventType', 'tenantId', 'page'),
  component: lazyScreen(async () => (await import('./sources/outbox-screen.tsx')).OutboxScreen),
})

const webhooks = createRoute({
  getParentRoute: () => root,
  path: '/sources/webhooks',
  component: lazyScreen(async () => (await import('./sources/webhooks-screen.tsx')).WebhooksScreen),
})

const kafka = createRoute({
  getParentRoute: () => root,
  path: '/sources/kafka',
  validateSearch: texts('service'),
  component: lazyScreen(async () => (await import('./sources/kafka-screen.tsx')).KafkaScreen),
})

const azure = createRoute({
  getParentRoute: () => root,
  path: '/sources/azure',
  component: lazyScreen(async () => (await import('./sources/azure-screen.tsx')).AzureScreen),
})

const history = createRoute({
  getParentRoute: () => root,
  path: '/history',
  // `entry` is the opened one, as `engine/rowKey`.
  validateSearch: texts(
    'engine',
    'operation',
    'status',
    'instanceId',
    'correlationId',
    'fromDate',
    'toDate',
    'entry',
  ),
  component: lazyScreen(async () => (await import('./history/history-screen.tsx')).HistoryScreen),
})

const settings = createRoute({
  getParentRoute: () => root,
  path: '/settings',
  component: lazyScreen(async () => (await import('./settings/settings-screen.tsx')).SettingsScreen),
})

export const router = createRouter({
  routeTree: root.addChildren([
    overview,
    signatures,
    signature,
    letters,
    letter,
    edit,
    redrives,
    redrive,
    queues,
    engines,
    outbox,
    webhooks,
    kafka,
    azure,
    history,
    settings,
  ]),
  scrollRestoration: true,
  defaultErrorComponent: BrokenScreen,
  defaultPreload: 'intent',
  // Reads are kept and refreshed by the queries.
  defaultPreloadStaleTime: 0,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
