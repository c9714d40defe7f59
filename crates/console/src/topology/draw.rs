//! A load balancer's tree as a drawing.

use super::{BalancerTree, FrontendTree, PoolTree, RuleTree, ServiceTree};
use crate::html::{Html, url_part};
use model::ServiceName;
use model::report::State;

/// A box; everything stands on a grid of 8.
const WIDTH: i32 = 208;
const HEIGHT: i32 = 48;
const GAP: i32 = 16;
/// From one column to the next.
const STEP: i32 = 240;
/// Between two Services.
const APART: i32 = 32;
const MARGIN: i32 = 2;
const HEADING: i32 = 32;
/// Up to this height the shorter side is put beside the middle of the longer one; on a longer
/// drawing the reader would have to look for it.
const SCREEN: i32 = 800;
/// Letters that fit into a box; bold ones are wider.
const LETTERS: usize = 22;

const COLUMNS: [&str; 5] = ["Service", "Frontend", "Rule and probe", "Pool", "Members"];

fn left(column: i32) -> i32 {
    MARGIN + column * STEP
}

/// A place on the drawing: where a box begins.
#[derive(Clone, Copy)]
struct Spot {
    x: i32,
    y: i32,
}

/// What stands in a box.
struct Card<'a> {
    class: &'static str,
    first: &'a str,
    second: &'a str,
    link: Option<String>,
}

/// Draws a load balancer.
pub fn draw(h: &mut Html, tree: &BalancerTree) {
    let (left_height, right_height) = (services_height(tree), pools_height(tree));
    let aside = |own: i32, other: i32| match other > own && other <= SCREEN {
        true => (other - own) / 2,
        false => 0,
    };
    let pools = pool_spots(tree, HEADING + aside(right_height, left_height));
    let height = HEADING + left_height.max(right_height) + MARGIN;
    let width = left(4) + WIDTH + MARGIN;
    let (w, t) = (width.to_string(), height.to_string());
    let view = format!("0 0 {width} {height}");
    let label = match tree.name.as_str() {
        "" => "Services without anything in Azure".to_owned(),
        name => format!("The way of traffic through load balancer {name}"),
    };
    let attributes = [
        ("class", "topology"),
        ("viewBox", view.as_str()),
        ("width", &w),
        ("height", &t),
        ("role", "group"),
        ("aria-label", &label),
    ];
    h.tag("svg", &attributes, |h| {
        for (column, title) in (0..).zip(COLUMNS) {
            text(h, "heading", Spot { x: left(column), y: 16 }, title);
        }
        for (pool, spots) in tree.pools.iter().zip(&pools) {
            draw_pool(h, &tree.name, pool, spots);
        }
        let mut y = HEADING + aside(left_height, right_height);
        for service in &tree.services {
            draw_service(h, &tree.name, service, &pools, y);
            y += service_height(service) + APART;
        }
    });
}

fn rows(frontend: &FrontendTree) -> i32 {
    let rows = frontend.rules.len() + usize::from(frontend.more > 0);
    i32::try_from(rows.max(1)).unwrap_or(i32::MAX)
}

fn stack(count: i32) -> i32 {
    count * HEIGHT + (count - 1).max(0) * GAP
}

fn service_height(service: &ServiceTree) -> i32 {
    stack(service.frontends.iter().map(rows).sum::<i32>().max(1))
}

/// Where a pool and its members stand.
struct PoolSpots {
    pool: Spot,
    members: Vec<Spot>,
}

/// Members that are drawn, or the box that stands for the others, or for none.
fn places(pool: &PoolTree) -> i32 {
    let count = pool.members.len() + usize::from(pool.count > pool.members.len());
    i32::try_from(count.max(1)).unwrap_or(i32::MAX)
}

fn pool_spots(tree: &BalancerTree, top: i32) -> Vec<PoolSpots> {
    let mut y = top;
    let spots = tree.pools.iter().map(|pool| {
        let count = places(pool);
        let members = (0..count).map(|n| Spot { x: left(4), y: y + n * (HEIGHT + GAP) });
        let members = members.collect();
        let bottom = y + stack(count);
        let pool = Spot { x: left(3), y: (y + bottom - HEIGHT) / 2 };
        y = bottom + APART;
        PoolSpots { pool, members }
    });
    spots.collect()
}

fn services_height(tree: &BalancerTree) -> i32 {
    tree.services.iter().map(|s| service_height(s) + APART).sum::<i32>() - APART
}

fn pools_height(tree: &BalancerTree) -> i32 {
    tree.pools.iter().map(|p| stack(places(p)) + APART).sum::<i32>() - APART
}

/// The page that lists everything in one frontend or pool; `kind` is `frontend` or `pool`.
pub(crate) fn whole_url(balancer: &str, kind: &str, name: &str) -> String {
    format!("/topology?balancer={}&{kind}={}", url_part(balancer), url_part(name))
}

fn draw_service(
    h: &mut Html,
    balancer: &str,
    service: &ServiceTree,
    pools: &[PoolSpots],
    top: i32,
) {
    let height = service_height(service);
    let own = Spot { x: left(0), y: top + (height - HEIGHT) / 2 };
    let mut y = top;
    for frontend in &service.frontends {
        let height = stack(rows(frontend));
        let spot = Spot { x: left(1), y: y + (height - HEIGHT) / 2 };
        edge(h, own, spot);
        let mut rule_y = y;
        for rule in &frontend.rules {
            let at = Spot { x: left(2), y: rule_y };
            edge(h, spot, at);
            if let Some(pool) = rule.pool.and_then(|p| pools.get(p)) {
                edge(h, at, pool.pool);
            }
            draw_rule(h, rule, at);
            rule_y += HEIGHT + GAP;
        }
        if frontend.more > 0 {
            let at = Spot { x: left(2), y: rule_y };
            edge(h, spot, at);
            let more = format!("{} more rules", frontend.more);
            let link = Some(whole_url(balancer, "frontend", &frontend.name));
            card(h, at, &Card { class: "box folded", first: &more, second: "", link });
        }
        let address = frontend.address.as_deref().unwrap_or("no address yet");
        let class = "box";
        card(h, spot, &Card { class, first: address, second: &frontend.name, link: None });
        y += height + GAP;
    }
    if service.frontends.is_empty() {
        let spot = Spot { x: left(1), y: own.y };
        edge(h, own, spot);
        let first = "nothing in Azure yet";
        card(h, spot, &Card { class: "box folded", first, second: "", link: None });
    }
    let link = Some(service_url(&service.name));
    let (first, second) = (service.name.to_string(), service.state.text());
    let class = state_class(service.state);
    card(h, own, &Card { class, first: &first, second, link });
}

fn state_class(state: State) -> &'static str {
    match state {
        State::Programmed => "box programmed",
        State::Refused | State::Rejected => "box refused",
        State::Removing => "box removing",
        State::Waiting | State::RefusedServing | State::Held => "box waiting",
    }
}

fn draw_rule(h: &mut Html, rule: &RuleTree, at: Spot) {
    let second = rule.probe.as_deref().unwrap_or("no probe");
    card(h, at, &Card { class: "box", first: &rule.ports, second, link: None });
}

fn draw_pool(h: &mut Html, balancer: &str, pool: &PoolTree, spots: &PoolSpots) {
    for spot in &spots.members {
        edge(h, spots.pool, *spot);
    }
    let count = match pool.count {
        0 => "empty".to_owned(),
        1 => "1 member".to_owned(),
        n => format!("{n} members"),
    };
    let class = "box";
    card(h, spots.pool, &Card { class, first: &pool.name, second: &count, link: None });
    for ((name, address), spot) in pool.members.iter().zip(&spots.members) {
        card(h, *spot, &Card { class, first: name, second: address, link: None });
    }
    let class = "box folded";
    if let Some(spot) = spots.members.get(pool.members.len()) {
        let (first, link) = match pool.count - pool.members.len() {
            0 => ("no members".to_owned(), None),
            n => (format!("{n} more"), Some(whole_url(balancer, "pool", &pool.name))),
        };
        card(h, *spot, &Card { class, first: &first, second: "", link });
    }
}

/// The path of a Service's page.
#[must_use]
pub fn service_url(name: &ServiceName) -> String {
    format!("/services/{}/{}", url_part(&name.namespace), url_part(&name.name))
}

fn edge(h: &mut Html, from: Spot, to: Spot) {
    let (x1, y1) = (from.x + WIDTH, from.y + HEIGHT / 2);
    let (x2, y2) = (to.x, to.y + HEIGHT / 2);
    let middle = (x1 + x2) / 2;
    let path = format!("M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}");
    h.leaf("path", &[("class", "edge"), ("d", &path)], "");
}

fn card(h: &mut Html, at: Spot, card: &Card<'_>) {
    match &card.link {
        Some(url) => h.tag("a", &[("href", url)], |h| filled(h, at, card)),
        None => h.tag("g", &[], |h| filled(h, at, card)),
    }
}

fn filled(h: &mut Html, at: Spot, card: &Card<'_>) {
    let whole = match card.second {
        "" => card.first.to_owned(),
        second => format!("{}, {second}", card.first),
    };
    h.leaf("title", &[], &whole);
    let (x, y) = (at.x.to_string(), at.y.to_string());
    let (width, height) = (WIDTH.to_string(), HEIGHT.to_string());
    let attributes = [
        ("class", card.class),
        ("x", x.as_str()),
        ("y", &y),
        ("width", &width),
        ("height", &height),
        ("rx", "6"),
    ];
    h.leaf("rect", &attributes, "");
    let x = at.x + 12;
    if card.second.is_empty() {
        text(h, "second", Spot { x, y: at.y + 28 }, card.first);
        return;
    }
    text(h, "first", Spot { x, y: at.y + 20 }, card.first);
    text(h, "second", Spot { x, y: at.y + 38 }, card.second);
}

fn text(h: &mut Html, class: &'static str, at: Spot, text: &str) {
    let (x, y) = (at.x.to_string(), at.y.to_string());
    let letters = if class == "first" { LETTERS - 2 } else { LETTERS };
    h.leaf("text", &[("class", class), ("x", &x), ("y", &y)], &cut(text, letters));
}

/// A long name keeps its beginning and its end.
fn cut(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let tail = most / 3;
    let head = letters.iter().take(most - tail - 1);
    head.chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}
