/** What was typed for a trial and not sent: kept outside of the views, and when the page is loaded anew. */

const PLACE = "recoup-drafts";
const drafts = new Map(kept()); // key of a trial -> { seed, values, verb }
const cutOff = new Set([...drafts].filter(([, one]) => one.verb).map(([key]) => key)); // on their way when it was

function kept() {
  try {
    return Object.entries(JSON.parse(sessionStorage.getItem(PLACE)) ?? {});
  } catch {
    return [];
  }
}

function keep() {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(Object.fromEntries(drafts)));
  } catch {
    // a browser may keep nothing
  }
}

/** What was typed for a trial; what was typed for another trial of the same number is forgotten. */
export function draft(key, seed) {
  const found = drafts.get(key);
  if (found && String(found.seed) !== String(seed)) forget(key);
  return drafts.get(key)?.values ?? {};
}

/** Keeps what is typed by the names of the fields; nothing where all of them are empty. */
export function write(key, seed, values) {
  const typed = Object.fromEntries(Object.entries(values).filter(([, value]) => value));
  if (Object.keys(typed).length) drafts.set(key, { seed, values: typed });
  else drafts.delete(key);
  keep();
}

/** It is on its way now. */
export function sent(key, seed, verb) {
  drafts.set(key, { seed, values: draft(key, seed), verb });
  cutOff.delete(key);
  keep();
}

/** It is not on its way any more, and stays as it was typed. */
export function stopped(key, seed) {
  write(key, seed, draft(key, seed));
}

export function forget(key) {
  drafts.delete(key);
  cutOff.delete(key);
  keep();
}

/** What was on its way when the page was loaded anew: said once. */
export function lost(key) {
  const verb = cutOff.delete(key) ? drafts.get(key)?.verb : null;
  if (verb) stopped(key, drafts.get(key).seed);
  return verb ?? null;
}

/** The keys of what is typed for trials of a study. */
export function drafted(base) {
  return [...drafts.keys()].filter((key) => key.startsWith(`${base}/`));
}

export function anyDraft() {
  return drafts.size > 0;
}
