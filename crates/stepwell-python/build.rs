//! On macOS the linker has to be told that Python's symbols come with the process.

#[expect(clippy::disallowed_methods, reason = "cargo tells a build script what it builds for")]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("macos") {
        println!("cargo:rustc-cdylib-link-arg=-undefined");
        println!("cargo:rustc-cdylib-link-arg=dynamic_lookup");
    }
}
